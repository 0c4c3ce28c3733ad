/** Threads and inspector on narrow screens, where they lie over the conversation. */

import { useEffect, useMemo, useState } from "preact/hooks";

/** Widest screens on which the panels lie over the conversation. The style sheet has the same limits. */
export const THREADS_OVER = "(max-width: 760px)";
export const INSPECTOR_OVER = "(max-width: 1180px)";

/** Devices that are used with fingers. Their keyboards have no key for a line break but Enter. */
export const TOUCH = "(pointer: coarse)";

/** True while the screen is as the media query says. */
export function useMedia(query: string): boolean {
  const list = useMemo(() => matchMedia(query), [query]);
  const [matches, setMatches] = useState(list.matches);
  useEffect(() => {
    const onChange = () => setMatches(list.matches);
    list.addEventListener("change", onChange);
    return () => list.removeEventListener("change", onChange);
  }, [list]);
  return matches;
}
