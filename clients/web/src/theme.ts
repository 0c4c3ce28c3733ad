/** Light or dark, and an accent colour that stays readable on both. */

import { accent, read, write } from "./config";
import { Store } from "./store";

export type Theme = "light" | "dark" | "system";

const THEME_KEY = "agui.theme";
const READABLE = 4.6; // WCAG AA asks for 4.5
/** What text in the accent colour lies on: `--sunken`, and `--accent-soft`, a share of the accent on `--surface`. */
const GROUNDS = {
  light: { sunken: "#f3f3f0", surface: "#ffffff", softShare: 0.09, towards: 0 },
  dark: { sunken: "#232327", surface: "#1e1e21", softShare: 0.22, towards: 255 },
};

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
  root.style.setProperty("--accent-on-light", accentText(accent, "light"));
  root.style.setProperty("--accent-on-dark", accentText(accent, "dark"));
}

/** The accent, moved towards black or white until it can be read on all that it lies on. */
export function accentText(colour: string, shown: keyof typeof GROUNDS): string {
  const { sunken, surface, softShare, towards } = GROUNDS[shown];
  const grounds = [sunken, mix(surface, channels(colour), softShare)];
  const end = [towards, towards, towards];
  for (let share = 0; share < 1; share += 0.05) {
    const moved = mix(colour, end, share);
    if (grounds.every((ground) => contrast(moved, ground) >= READABLE)) return moved;
  }
  return mix(colour, end, 1);
}

/** The colour with a share of another one's channels, as `color-mix(in srgb)` mixes. */
function mix(colour: string, other: readonly number[], share: number): string {
  const mixed = channels(colour).map((channel, at) => Math.round(channel + (other[at]! - channel) * share));
  return `#${mixed.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
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
