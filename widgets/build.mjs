// Builds the front ends: `node build.mjs [--tests | --preview | --out DIR]`. The output is readable and committed.
import { readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const option = (name) => process.argv.includes(name);
const value = (name) => (option(name) ? process.argv[process.argv.indexOf(name) + 1] : undefined);

const common = {
  absWorkingDir: here,
  bundle: true,
  format: "esm",
  charset: "utf8",
  // Readable on purpose: people open these files from an installed package.
  minify: false,
  legalComments: "none",
  logLevel: "warning",
};

if (option("--tests")) {
  rmSync(join(here, ".tests"), { recursive: true, force: true });
  const tests = readdirSync(join(here, "src"), { recursive: true })
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join("src", name));
  await build({ ...common, entryPoints: tests, outdir: ".tests", platform: "node", target: "node20", outExtension: { ".js": ".mjs" } });
} else if (option("--preview")) {
  await build({ ...common, entryPoints: ["preview/preview.ts"], outdir: ".preview", target: "es2022" });
} else {
  const outdir = value("--out") ?? join(here, "..", "agentlab", "widgets", "static");
  await build({
    ...common,
    // Nested CSS is flattened for the older browsers that JupyterLab still supports.
    target: ["es2022", "chrome111", "firefox111", "safari16.4"],
    entryPoints: [
      { in: "src/stepper/stepper.ts", out: "stepper" },
      { in: "src/stepper/stepper.css", out: "stepper" },
      { in: "src/approve/approve.ts", out: "approve" },
      { in: "src/approve/approve.css", out: "approve" },
    ],
    outdir,
  });
}
