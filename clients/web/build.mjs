/**
 * Build the page into the folder that the server serves it from; with `--check`, compare it with what is committed.
 *
 * Compressed copies stand beside the files. They are compared by what is in them, because zlib may compress another way.
 */

import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const committed = join(here, "../../app/agui_container/web/console/static");
const FIRST_LOAD_LIMIT = 200 * 1024;
/** Formulas and colours of code load when they are used. */
const FIRST_LOAD = /^(?!chunks\/(?:highlight|math)-).*\.(?:html|js|css|svg)$/;
const COMPRESSED = /\.(?:js|css)$/;

async function bundle(folder) {
  await build({
    absWorkingDir: here,
    entryPoints: { app: "src/main.tsx" },
    outdir: folder,
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "linked",
    chunkNames: "chunks/[name]-[hash]",
    alias: {
      "@agui-container/client": join(here, "../typescript/src/index.ts"),
      "@ag-ui/client": join(here, "node_modules/@ag-ui/client"),
      rxjs: join(here, "node_modules/rxjs"),
    },
    jsx: "automatic",
    jsxImportSource: "preact",
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "warning",
  });
  await build({
    absWorkingDir: here,
    entryPoints: { app: "src/styles/app.css" },
    outdir: folder,
    bundle: true,
    minify: true,
    target: "es2022",
    logLevel: "warning",
  });
  for (const name of ["index.html", "icon.svg", "app-frame.html"])
    await writeFile(join(folder, name), await readFile(join(here, "src", name)));
}

async function filesOf(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

async function compress(folder) {
  for (const name of await filesOf(folder)) {
    if (!COMPRESSED.test(name)) continue;
    await writeFile(join(folder, `${name}.gz`), gzipSync(await readFile(join(folder, name)), { level: 9 }));
  }
}

async function firstLoad(folder) {
  const sizes = await Promise.all(
    (await filesOf(folder))
      .filter((name) => FIRST_LOAD.test(name))
      .map(async (name) => gzipSync(await readFile(join(folder, name)), { level: 9 }).length),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function differences(built) {
  const content = async (folder, name) => {
    const bytes = await readFile(join(folder, name)).catch(() => null);
    return name.endsWith(".gz") && bytes !== null ? gunzipSync(bytes) : bytes;
  };
  const names = new Set([...(await filesOf(built)), ...(await filesOf(committed).catch(() => []))]);
  const different = [];
  for (const name of [...names].sort()) {
    const [ours, theirs] = [await content(built, name), await content(committed, name)];
    if (ours === null || theirs === null || !ours.equals(theirs)) different.push(name);
  }
  return different;
}

const isCheck = process.argv.includes("--check");
const target = isCheck ? await mkdtemp(join(tmpdir(), "chat-page-")) : committed;
if (!isCheck) await rm(committed, { recursive: true, force: true });
await bundle(target);
await compress(target);
const size = await firstLoad(target);
console.log(`first load: ${(size / 1024).toFixed(1)} KB gzip`);
const problems = [];
if (size > FIRST_LOAD_LIMIT) problems.push("The first load is larger than 200 KB.");
if (isCheck) {
  const different = await differences(target);
  if (different.length > 0) problems.push(`Not what is committed; run \`make web\`: ${different.join(", ")}`);
  await rm(target, { recursive: true });
}
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
