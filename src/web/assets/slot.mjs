// @ts-check
// One slot: a picture of its screen, its conversation, and what can be done with it.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.mjs";
import { live, request, whyNot } from "./api.mjs";
import { useAnswer } from "./answer.mjs";
import { Keyboard, useKeyboard } from "./keyboard.mjs";
import { Screen } from "./screen.mjs";
import { oneLine, visible } from "./text.mjs";

/** @param {{slot: any, changed: number, epoch: number, now: number, told: (text: string) => void}} props */
export function Slot({ slot, changed, epoch, now, told }) {
  const [tab, setTab] = useState("screen");
  const keyboard = useKeyboard(slot, told);
  return html`<section class="slot" aria-label=${slot.slot}>
    <h2>${oneLine(slot.slot)} <span class="role">${oneLine(slot.state)}</span></h2>
    <div class="tabs">
      <div role="tablist">${["screen", "conversation", "log"].map((name) => html`<button role="tab" aria-selected=${tab === name} onClick=${() => setTab(name)}>${name}</button>`)}</div>
      <span class="grow"></span>
      <${Act} slot=${slot} name="interrupt" told=${told} />
      <${Act} slot=${slot} name="restart" told=${told} />
    </div>
    ${(tab === "screen" || keyboard.isHeld) && html`<${Keyboard} slot=${slot} now=${now} keyboard=${keyboard} />`}
    ${tab === "screen" && html`<${Picture} slot=${slot.slot} epoch=${epoch} keyboard=${keyboard} />`}
    ${tab === "conversation" && html`<${Conversation} slot=${slot.slot} changed=${changed} />`}
    ${tab === "log" && html`<${Log} slot=${slot.slot} changed=${changed} />`}
    ${slot.kind === "claude" && html`<${Send} slot=${slot.slot} told=${told} />`}
  </section>`;
}

/** After the server has ended a live screen, it is asked for again. */
const RETRY_MS = 2000;

/** The live screen; one look at it while there is no connection, and a new one when the page has connected again. @param {string} slot @param {number} epoch */
function useScreen(slot, epoch) {
  const [screen, setScreen] = useState(/** @type {any} */ (null));
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let timer = 0;
    const stop = live(slot, setScreen, () => {
      request("screen", { slot, ansi: true }).then(setScreen, (error) => setScreen({ error }));
      timer = setTimeout(() => setTries(tries + 1), RETRY_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [slot, tries, epoch]);
  return screen;
}

/** Nobody who looks changes the size of a slot, and neither does who types here. @param {{slot: string, epoch?: number, keyboard?: any}} props */
export function Picture({ slot, epoch = 0, keyboard }) {
  const screen = useScreen(slot, epoch);
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (keyboard?.isHeld) place.current?.focus();
  }, [keyboard?.isHeld]);
  if (screen === null) return html`<p class="why">…</p>`;
  if (screen.error) return html`<p class="failed">${visible(screen.error.message)}</p>`;
  return html`<${Screen} place=${place} screen=${screen} name="screen" held=${keyboard?.isHeld} keys=${keyboard?.keys} />`;
}

/** @param {{slot: string, changed: number}} props */
function Conversation({ slot, changed }) {
  const history = useAnswer(() => request("history", { slot, last: 30 }), [slot, changed]);
  if (history === null) return html`<p class="why">…</p>`;
  if (history.error) return html`<p class="failed">${visible(history.error.message)}</p>`;
  return html`<ol class="turns">${history.turns.map(
    (turn) => html`<li class=${`turn-${turn.role}`}><b>${oneLine(turn.tool ?? turn.role)}</b><pre>${visible(turn.input ? JSON.stringify(turn.input, null, 2) : turn.text)}</pre></li>`,
  )}</ol>`;
}

/** @param {{slot: string, changed: number}} props */
function Log({ slot, changed }) {
  const log = useAnswer(() => request("log", { slot, lines: 200 }), [slot, changed]);
  if (log === null) return html`<p class="why">…</p>`;
  if (log.error) return html`<p class="failed">${visible(log.error.message)}</p>`;
  return html`<pre class="log" tabindex="0" aria-label="log of ${slot}, the newest first">${[...log.lines].reverse().map((line) => html`<div>${visible(line)}${"\n"}</div>`)}</pre>`;
}

/** The second press within two seconds does it. @param {{slot: any, name: "interrupt" | "restart", told: (text: string) => void}} props */
function Act({ slot, name, told }) {
  const [armed, setArmed] = useState(false);
  useEffect(() => {
    if (!armed) return undefined;
    const timer = setTimeout(() => setArmed(false), 2000);
    return () => clearTimeout(timer);
  }, [armed]);
  const act = async () => {
    if (!armed) return setArmed(true);
    setArmed(false);
    try {
      await request(name, name === "interrupt" ? { slot: slot.slot } : { slots: [slot.slot] });
      told(`${slot.slot}: ${name} done`);
    } catch (error) {
      told(`${slot.slot}: ${error.message}`);
    }
    return undefined;
  };
  const not = whyNot(name);
  return html`<button disabled=${not !== ""} title=${not} onClick=${act}>${armed ? `${name}: press again` : name}</button>`;
}

/** @param {{slot: string, told: (text: string) => void}} props */
function Send({ slot, told }) {
  const [text, setText] = useState("");
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const message = text;
    setText("");
    try {
      const sent = await request("send", { slot, text: message, wait: false, id: crypto.randomUUID() });
      told(`${slot}: message ${sent.state}`);
    } catch (error) {
      setText(message);
      told(`${slot}: ${error.message}`);
    }
  };
  const not = whyNot("send");
  if (not !== "") return html`<p class="why">To send, interrupt or restart ${not}.</p>`;
  return html`<form class="send" onSubmit=${send}>
    <input value=${text} onInput=${(event) => setText(event.target.value)} aria-label="message to ${slot}" placeholder="Message to ${slot}…" maxlength="20000" />
    <button disabled=${text.trim() === ""}>Send</button>
  </form>`;
}
