import assert from "node:assert/strict";
import { test } from "node:test";

Object.assign(globalThis, { document: { documentElement: { dataset: {} } } });
const { accentText, contrast } = await import("../src/theme");

test("text in any accent can be read on the soft shade of that accent, in both themes", () => {
  for (const accent of ["#4a5bd4", "#ffd400", "#000000", "#ffffff", "#d4004a", "#00a060"]) {
    for (const [shown, surface, share] of [
      ["light", [0xff, 0xff, 0xff], 0.09],
      ["dark", [0x1e, 0x1e, 0x21], 0.22],
    ] as const) {
      const soft = surface.map(
        (channel, at) => channel * (1 - share) + Number.parseInt(accent.slice(1 + 2 * at, 3 + 2 * at), 16) * share,
      );
      const hex = `#${soft.map((channel) => Math.round(channel).toString(16).padStart(2, "0")).join("")}`;
      assert.ok(contrast(accentText(accent, shown), hex) >= 4.5, `${accent} ${shown}`);
    }
  }
});
