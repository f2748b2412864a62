// @ts-check
// An answer of the daemon that is asked for again when something has changed.

import { useEffect, useRef, useState } from "./vendor/htm-preact.mjs";

/** Between two looks at what changes, however often it does. */
const LOOK_MS = 1000;

/** The newest answer. @param {() => Promise<any>} ask @param {any[]} on */
export function useAnswer(ask, on) {
  const [answer, setAnswer] = useState(null);
  const last = useRef({ at: -LOOK_MS, asked: 0, shown: 0 });
  useEffect(() => {
    const timer = setTimeout(async () => {
      last.current.at = performance.now();
      const number = (last.current.asked += 1);
      const next = await ask().catch((error) => ({ error }));
      if (number < last.current.shown) return;
      last.current.shown = number;
      setAnswer(next);
    }, Math.max(0, last.current.at + LOOK_MS - performance.now()));
    return () => clearTimeout(timer);
  }, on);
  return answer;
}
