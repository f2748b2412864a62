// @ts-check
// One slot: a picture of its screen, its conversation, and what can be done with it.

import { html, useEffect, useState } from "./vendor/htm-preact.mjs";
import { live, request, whyNot } from "./api.mjs";
import { useAnswer } from "./answer.mjs";
import { oneLine, runs, visible } from "./text.mjs";

/** @param {{slot: any, changed: number, told: (text: string) => void}} props */
export function Slot({ slot, changed, told }) {
  const [tab, setTab] = useState("screen");
  return html`<section class="slot" aria-label=${slot.slot}>
    <h2>${oneLine(slot.slot)} <span class="role">${oneLine(slot.state)}</span></h2>
    <div class="tabs">
      <div role="tablist">${["screen", "conversation", "log"].map((name) => html`<button role="tab" aria-selected=${tab === name} onClick=${() => setTab(name)}>${name}</button>`)}</div>
      <span class="grow"></span>
      <${Act} slot=${slot} name="interrupt" told=${told} />
      <${Act} slot=${slot} name="restart" told=${told} />
    </div>
    ${tab === "screen" && html`<${Picture} slot=${slot.slot} />`}
    ${tab === "conversation" && html`<${Conversation} slot=${slot.slot} changed=${changed} />`}
    ${tab === "log" && html`<${Log} slot=${slot.slot} changed=${changed} />`}
    ${slot.kind === "claude" && html`<${Send} slot=${slot.slot} told=${told} />`}
  </section>`;
}

/** After the server has ended a live screen, it is asked for again. */
const RETRY_MS = 2000;

/** The live screen; one look at it while there is no connection. @param {string} slot */
function useScreen(slot) {
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
  }, [slot, tries]);
  return screen;
}

/** Nobody who looks changes the size of a slot. @param {{slot: string}} props */
export function Picture({ slot }) {
  const screen = useScreen(slot);
  if (screen === null) return html`<p class="why">…</p>`;
  if (screen.error) return html`<p class="failed">${visible(screen.error.message)}</p>`;
  return html`<pre class="screen" tabindex="0" aria-label="screen, ${screen.cols} columns, ${screen.rows} rows">${screen.lines.map(
    (line) => html`<div>${runs(line).map((run) => html`<span class=${run.classes} style=${run.colour ? { color: run.colour } : null}>${run.text}</span>`)}${"\n"}</div>`,
  )}</pre>`;
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
