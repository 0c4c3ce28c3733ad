import { cookies } from "next/headers";
import { Chat } from "./in-browser";

export default async function Page() {
  const isSignedIn = (await cookies()).has("token");
  return isSignedIn ? <Chat /> : <a href="/sign-in">Sign in</a>;
}
