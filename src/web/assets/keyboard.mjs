// @ts-check
// The keyboard of a slot: taken by a button, shown to all, given back by a button, by leaving, or by saying nothing.
// Keys come from the person's own keyboard and from nothing else: what a screen shows is never answered.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.mjs";
import { request, requestAtTheEnd, whyNot } from "./api.mjs";
import { age, oneLine } from "./text.mjs";

/** The daemon forgets a holder after 30 s. */
const KEEP_MS = 10_000;
/** Who has it instead stands beside the button. */
const LOST = "you have the keyboard no more";
/** Bytes that wait for the request before them; more is not typed by hand. */
const MOST_BYTES = 4096;

/** What a terminal sends for keys that have a name, as `missiond keys` has them. @type {Record<string, string>} */
const NAMED = {
  Enter: "\r", Tab: "\t", Escape: "\u001b", Backspace: "\u007f", Delete: "\u001b[3~", ArrowUp: "\u001b[A", ArrowDown: "\u001b[B",
  ArrowRight: "\u001b[C", ArrowLeft: "\u001b[D", Home: "\u001b[H", End: "\u001b[F", PageUp: "\u001b[5~", PageDown: "\u001b[6~",
};

/**
 * What a key sends; `null` for one that is the browser's, or no key of a terminal.
 * @param {KeyboardEvent} event @returns {string | null}
 */
export function sent(event) {
  if (event.isComposing || event.metaKey) return null;
  const isText = [...event.key].length === 1;
  // With AltGr, a keyboard makes a character of its own.
  const isPlain = event.getModifierState("AltGraph") || (!event.ctrlKey && !event.altKey);
  if (isText && isPlain) return event.key;
  const named = event.key === "Tab" && event.shiftKey ? "\u001b[Z" : NAMED[event.key];
  if (named !== undefined && !event.ctrlKey) return event.altKey ? `\u001b${named}` : named;
  if (!isText || (event.ctrlKey && event.shiftKey)) return null;
  const code = event.key.toUpperCase().codePointAt(0) ?? 0;
  const held = !event.ctrlKey ? event.key : event.key === " " ? "\0" : code >= 64 && code <= 95 ? String.fromCodePoint(code & 31) : null;
  return held === null || !event.altKey ? held : `\u001b${held}`;
}

/**
 * The keyboard of one slot, as this page has it.
 * @param {any} slot @param {(text: string) => void} told
 */
export function useKeyboard(slot, told) {
  // Another one each time that it is taken: a request that arrives late is about an earlier time.
  const id = useRef("");
  const [since, setSince] = useState("");
  const [into, setInto] = useState("");
  const waiting = useRef(/** @type {number[]} */ ([]));
  const isWriting = useRef(false);
  const name = slot.slot;
  const dialog = slot.dialog?.id ?? "";
  const intoDialog = useRef(false);
  intoDialog.current = dialog !== "" && into === dialog;

  const lost = (/** @type {string} */ why) => {
    waiting.current = [];
    setSince("");
    setInto("");
    told(`${name}: ${why}`);
  };
  const take = async () => {
    id.current = crypto.randomUUID();
    try {
      const { keyboard } = await request("keyboard", { slot: name, id: id.current, action: "take" });
      setSince(keyboard.since);
      told(`${name}: you have the keyboard`);
    } catch (error) {
      told(`${name}: ${error.message}`);
    }
  };
  // The effect below gives it back, as it does when another slot is chosen.
  const release = () => lost("the keyboard is free");
  const isHeld = since !== "";
  // Somebody else has it now, or it is free.
  useEffect(() => {
    if (isHeld && slot.keyboard?.since !== since && slot.keyboard) lost(LOST);
  }, [slot.keyboard?.since, slot.keyboard?.via]);
  useEffect(() => {
    if (!isHeld) return undefined;
    const own = id.current;
    const keep = () => request("keyboard", { slot: name, id: own, action: "keep" }).catch((error) => error.status === 409 && lost(LOST));
    const timer = setInterval(keep, KEEP_MS);
    const leave = () => requestAtTheEnd("keyboard", { slot: name, id: own, action: "release" });
    addEventListener("pagehide", leave);
    return () => {
      clearInterval(timer);
      removeEventListener("pagehide", leave);
      leave();
    };
  }, [isHeld, name]);

  /** One request at a time, so that keys stay in order. What is typed meanwhile goes with the next. */
  const write = async () => {
    if (isWriting.current) return;
    isWriting.current = true;
    while (waiting.current.length > 0) {
      const bytes = waiting.current;
      waiting.current = [];
      try {
        await request("write", { slot: name, bytes, keyboard: id.current, ...(intoDialog.current && { into_dialog: true }) });
      } catch (error) {
        // What was typed behind a refused key was meant for another screen.
        waiting.current = [];
        told(`${name}: ${error.message}`);
      }
    }
    isWriting.current = false;
  };
  const type = (/** @type {string} */ text) => {
    const bytes = [...new TextEncoder().encode(text)];
    if (waiting.current.length + bytes.length > MOST_BYTES) {
      told(`${name}: too much at once; nothing was typed`);
      return;
    }
    waiting.current.push(...bytes);
    write();
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey && event.key === "q") {
      event.preventDefault();
      release();
      return;
    }
    const text = sent(event);
    if (text === null) return;
    event.preventDefault();
    type(text);
  };
  const onPaste = (/** @type {ClipboardEvent} */ event) => {
    event.preventDefault();
    const text = event.clipboardData?.getData("text/plain") ?? "";
    // A line break would send what stands before it, and other control characters are keys.
    if (/[\u0000-\u001f\u007f-\u009f]/u.test(text)) told(`${name}: a paste with line breaks or control characters is not typed; send it as a message`);
    else if (text !== "") type(text);
  };
  return { isHeld, take, release, dialog, into, setInto, keys: isHeld ? { onKeyDown, onPaste } : {} };
}

/** Who has the keyboard, and the button for it. @param {{slot: any, now: number, keyboard: ReturnType<typeof useKeyboard>}} props */
export function Keyboard({ slot, now, keyboard }) {
  const not = whyNot("keyboard");
  const holder = slot.keyboard;
  const looks = [slot.attached > 0 && `${slot.attached} attached`, holder && !keyboard.isHeld && `${oneLine(holder.via)} has the keyboard (${age(holder.since, now)})`];
  return html`<div class="keyboard">
    ${keyboard.isHeld
      ? html`<b class="held" role="status">You have the keyboard: what you type on the screen goes to ${oneLine(slot.slot)}.</b> <button onClick=${keyboard.release}>Give it back (Ctrl-Q)</button>
        ${keyboard.dialog !== "" && html`<label class="into"><input type="checkbox" checked=${keyboard.into === keyboard.dialog} onChange=${(/** @type {any} */ event) => keyboard.setInto(event.target.checked ? keyboard.dialog : "")} /> also into the open dialog: it is your verdict</label>`}`
      : html`<span class="why">${["you look on", ...looks].filter(Boolean).join(" · ")}</span> <button disabled=${not !== "" || slot.pid === null} title=${not} onClick=${keyboard.take}>Take keyboard</button>`}
  </div>`;
}
