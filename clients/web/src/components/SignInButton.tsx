/** The button to sign in, where the server has a client id for this page. */

import { beginSignIn, canSignIn, signInProblem } from "../sign-in";
import { useStore } from "../store";
import { token } from "../token";

export function SignInButton() {
  const isSignedIn = useStore(token, (value) => value !== "");
  const problem = useStore(signInProblem);
  if (!canSignIn || isSignedIn) return null;
  return (
    <>
      <button type="button" class="button primary" onClick={() => void beginSignIn()}>
        Sign in
      </button>
      {problem !== "" && (
        <p class="field-error" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}
