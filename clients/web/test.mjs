/** Bundle the unit tests and run them: Node.js reads no TypeScript by itself. */

import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = await mkdtemp(join(tmpdir(), "chat-page-tests-"));
const tests = (await readdir(join(here, "tests"))).filter((name) => name.endsWith(".test.ts"));
await build({
  absWorkingDir: here,
  entryPoints: tests.map((name) => `tests/${name}`),
  outdir: folder,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "browser",
  external: ["node:*"],
  format: "esm",
  target: "node20",
  alias: {
    "@agui-container/client": join(here, "../typescript/src/index.ts"),
    "@ag-ui/client": join(here, "node_modules/@ag-ui/client"),
    rxjs: join(here, "node_modules/rxjs"),
  },
  logLevel: "warning",
});
const files = tests.map((name) => join(folder, name.replace(/\.ts$/, ".mjs")));
const { status } = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" });
await rm(folder, { recursive: true });
process.exitCode = status ?? 1;
