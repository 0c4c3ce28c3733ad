/** The examples of the documents run as they are pasted, and print what is shown. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { ROOT, type Server, startServer } from "./server.js";

const PACKAGE = join(ROOT, "clients", "typescript");
const run = promisify(execFile);

interface Example {
  line: number;
  code: string;
  output: string;
}

/** Blocks that use this client, each with the output that is shown behind it. Servers and blocks for a browser are not run. */
function examplesOf(document: string): Example[] {
  const text = readFileSync(join(ROOT, document), "utf8");
  const block = /^```js((?: [\w-]+)*)\n([\s\S]*?)^```\n(?:\n```text output\n([\s\S]*?)^```$)?/gm;
  return [...text.matchAll(block)]
    .filter(([, marks, code]) => !marks?.includes("needs-browser") && code?.includes("@agui-container/client"))
    .filter(([, , code]) => !code?.includes("createServer("))
    .map((match) => ({
      line: text.slice(0, match.index).split("\n").length,
      code: match[2] ?? "",
      output: match[3] ?? "",
    }));
}

for (const document of ["clients/typescript/README.md", "docs/clients.md"]) {
  describe(document, () => {
    let server: Server;

    before(async () => {
      server = await startServer();
    });
    after(() => server.stop());

    const examples = examplesOf(document);
    it("has examples", () => assert.ok(examples.length > 0));

    for (const { line, code, output } of examples) {
      it(`the example in line ${line} prints what is shown`, async () => {
        const here = code.replaceAll("localhost:8080", `127.0.0.1:${server.port}`);
        const { stdout, stderr } = await run("node", ["--input-type=module", "--eval", here], { cwd: PACKAGE });
        assert.equal(stdout, output);
        assert.equal(stderr, "");
      });
    }
  });
}
