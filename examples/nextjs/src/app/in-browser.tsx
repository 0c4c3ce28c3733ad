"use client";

import dynamic from "next/dynamic";

/** The chat, which only a browser can show: the address has its thread. */
export const Chat = dynamic(() => import("./chat"), { ssr: false });
