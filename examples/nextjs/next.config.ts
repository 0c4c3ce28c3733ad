import type { NextConfig } from "next";

export default { distDir: "dist" } satisfies NextConfig;
