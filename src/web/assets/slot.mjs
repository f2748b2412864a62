// @ts-check
// One slot: a picture of its screen, its conversation, and what can be done with it.

import { html, useEffect, useState } from "./vendor/htm-preact.mjs";
import { request } from "./api.mjs";
import { oneLine, runs, visible } from "./text.mjs";

/** Between two looks at a screen that changes. */
const LOOK_MS = 1000;

/** @param {{slot: any, changed: number, told: (text: string) => void}} props */
export function Slot({ slot, changed, told }) {
  const [tab, setTab] = useState("screen");
  return html`<section class="slot" aria-label=${slot.slot}>
    <h2>${oneLine(slot.slot)} <span class="role">${oneLine(slot.state)}</span></h2>
    <div class="tabs">
      <div role="tablist">${["screen", "conversation"].map((name) => html`<button role="tab" aria-selected=${tab === name} onClick=${() => setTab(name)}>${name}</button>`)}</div>
      <span class="grow"></span>
      <${Act} slot=${slot} name="interrupt" told=${told} />
      <${Act} slot=${slot} name="restart" told=${told} />
    </div>
    ${tab === "screen" ? html`<${Picture} slot=${slot.slot} changed=${changed} />` : html`<${Conversation} slot=${slot.slot} changed=${changed} />`}
    ${slot.kind === "claude" && html`<${Send} slot=${slot.slot} told=${told} />`}
  </section>`;
}

/** Asks again when the slot has changed, at most once a second. @param {() => Promise<any>} ask @param {any[]} on */
function useAnswer(ask, on) {
  const [answer, setAnswer] = useState(null);
  useEffect(() => {
    let is_current = true;
    const timer = setTimeout(async () => {
      const next = await ask().catch((error) => ({ error }));
      if (is_current) setAnswer(next);
    }, answer === null ? 0 : LOOK_MS);
    return () => {
      is_current = false;
      clearTimeout(timer);
    };
  }, on);
  return answer;
}

/** Nobody who looks changes the size of a slot. @param {{slot: string, changed: number}} props */
function Picture({ slot, changed }) {
  const screen = useAnswer(() => request("screen", { slot, ansi: true }), [slot, changed]);
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

/** The second press within two seconds does it. @param {{slot: any, name: string, told: (text: string) => void}} props */
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
      await request(name, { slots: [slot.slot] });
      told(`${slot.slot}: ${name} done`);
    } catch (error) {
      told(`${slot.slot}: ${error.message}`);
    }
    return undefined;
  };
  return html`<button onClick=${act}>${armed ? `${name}: press again` : name}</button>`;
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
  return html`<form class="send" onSubmit=${send}>
    <input value=${text} onInput=${(event) => setText(event.target.value)} aria-label="message to ${slot}" placeholder="Message to ${slot}…" maxlength="20000" />
    <button disabled=${text.trim() === ""}>Send</button>
  </form>`;
}
