/** Stands for the sign-in of your identity provider: `make issuer` gives a token to every user. */

import { cookies } from "next/headers";
import { redirect } from "next/navigation";

const ISSUER_URL = process.env.ISSUER_URL ?? "http://localhost:9000";

export async function GET() {
  const answer = await fetch(`${ISSUER_URL}/token?sub=alice`);
  const options = { httpOnly: true, sameSite: "lax", secure: process.env.NODE_ENV === "production" } as const;
  (await cookies()).set("token", await answer.text(), options);
  redirect("/");
}
