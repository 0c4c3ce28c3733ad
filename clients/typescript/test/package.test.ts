/** What is shipped: a small archive that works where it is installed, in Node.js and for TypeScript. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { ERROR_CODES } from "../src/index.js";
import { ROOT } from "./server.js";

const PACKAGE = join(ROOT, "clients", "typescript");
const MAX_GZIP = 15_000;

describe("the npm package", () => {
  let folder: string;
  let files: string[];

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "client-"));
    const packed = execFileSync("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], {
      cwd: PACKAGE,
    });
    const [{ filename, files: listed }] = JSON.parse(String(packed));
    files = listed.map(({ path }: { path: string }) => path);
    const modules = join(folder, "node_modules");
    mkdirSync(join(modules, "@agui-container", "client"), { recursive: true });
    const target = join(modules, "@agui-container", "client");
    execFileSync("tar", ["-xzf", join(folder, filename), "--strip-components=1", "-C", target]);
    for (const peer of ["@ag-ui", "rxjs", "zod"]) symlinkSync(join(PACKAGE, "node_modules", peer), join(modules, peer));
  });
  after(() => rmSync(folder, { recursive: true }));

  it("has the code, its types, the README and nothing else", () => {
    const allowed = /^(package\.json|README\.md|dist\/[\w-]+\.(js|d\.ts))$/;
    assert.deepEqual(
      files.filter((file) => !allowed.test(file)),
      [],
    );
    for (const file of ["package.json", "README.md", "dist/index.js", "dist/index.d.ts"])
      assert.ok(files.includes(file));
  });

  it("can be imported where it is installed", () => {
    const code = 'import { WebSocketAgent } from "@agui-container/client"; console.log(WebSocketAgent.name);';
    const printed = execFileSync("node", ["--input-type=module", "--eval", code], { cwd: folder });
    assert.equal(String(printed), "WebSocketAgent\n");
  });

  it("has types that fit the official client's", () => {
    writeFileSync(
      join(folder, "use.mts"),
      `import type { AbstractAgent, HttpAgent } from "@ag-ui/client";
       import { ResumableHttpAgent, WebSocketAgent } from "@agui-container/client";
       export const agents: Record<string, AbstractAgent> = {
         socket: new WebSocketAgent({ url: async () => "wss://example.com/ws", token: () => "token" }),
       };
       export const http: HttpAgent = new ResumableHttpAgent({ url: "/invocations" });
       // @ts-expect-error a WebSocketAgent needs a URL
       new WebSocketAgent({});
      `,
    );
    const options = ["--strict", "--noEmit", "--skipLibCheck", "--module", "nodenext", "--target", "es2022"];
    const tsc = join(PACKAGE, "node_modules", "typescript", "bin", "tsc");
    execFileSync("node", [tsc, ...options, "use.mts"], { cwd: folder, stdio: "inherit" });
  });

  it(`weighs less than ${MAX_GZIP} bytes gzip without its peers`, async () => {
    const { peerDependencies } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"));
    const { outputFiles } = await build({
      entryPoints: [join(PACKAGE, "src", "index.ts")],
      bundle: true,
      minify: true,
      write: false,
      format: "esm",
      platform: "browser",
      external: Object.keys(peerDependencies),
    });
    const size = gzipSync(outputFiles[0]?.contents ?? "").length;
    assert.ok(size > 1_000 && size < MAX_GZIP, `${size} bytes`);
  });

  it("knows every code of the server's error table", () => {
    const table = readFileSync(join(ROOT, "docs/http-api.md"), "utf8");
    const section = table.slice(table.indexOf("## Errors"), table.indexOf("## WebSocket frames"));
    const codes = [...section.matchAll(/^\| `([A-Z_]+)` \| \d{3} /gm)].map(([, code]) => code);
    assert.ok(codes.length > 20);
    assert.deepEqual([...ERROR_CODES], codes);
  });
});
