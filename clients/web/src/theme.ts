/** Light or dark, and an accent colour that stays readable on both. */

import { accent, read, write } from "./config";
import { Store } from "./store";

export type Theme = "light" | "dark" | "system";

const THEME_KEY = "agui.theme";
const READABLE = 4.6; // WCAG AA asks for 4.5
const BACKGROUNDS = { light: "#f3f3f0", dark: "#232329" };

export const theme = new Store<Theme>(known(read(THEME_KEY)));

function known(value: string | null): Theme {
  return value === "light" || value === "dark" ? value : "system";
}

export function setTheme(chosen: Theme): void {
  write(THEME_KEY, chosen);
  theme.set(chosen);
  paintTheme();
}

/** Set the attributes and variables that the style sheet uses. */
export function paintTheme(): void {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset.theme;
  else root.dataset.theme = theme.value;
  root.style.setProperty("--accent", accent);
  root.style.setProperty("--on-accent", contrast(accent, "#ffffff") >= READABLE ? "#ffffff" : "#111113");
  root.style.setProperty("--accent-on-light", readable(accent, BACKGROUNDS.light, 0));
  root.style.setProperty("--accent-on-dark", readable(accent, BACKGROUNDS.dark, 255));
}

/** Move a colour towards black (0) or white (255) until it can be read on the background. */
export function readable(colour: string, background: string, towards: number): string {
  for (let share = 0; share <= 1; share += 0.05) {
    const mixed = channels(colour).map((channel) => Math.round(channel + (towards - channel) * share));
    const hex = `#${mixed.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
    if (contrast(hex, background) >= READABLE) return hex;
  }
  return towards === 0 ? "#000000" : "#ffffff";
}

export function contrast(one: string, other: string): number {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function luminance(colour: string): number {
  const [red, green, blue] = channels(colour).map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function channels(colour: string): number[] {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
}
