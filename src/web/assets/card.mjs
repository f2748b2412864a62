// @ts-check
// What a slot asks, whole, and the answers to it.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.mjs";
import { request, whyNot } from "./api.mjs";
import { Arguments } from "./argue.mjs";
import { age, oneLine, parts, visible } from "./text.mjs";

/** After another ask has come under the pointer, its buttons do nothing for this long: a second click was meant for the one before. */
const DEAD_MS = 1500;

/** Whether a person has something to answer there. @param {any} slot */
export const asks = (slot) => slot.dialog !== null || (slot.waiting_calls ?? []).length > 0;

/** One line about what is asked. @param {any} slot */
export function summary(slot) {
  const call = slot.dialog ?? slot.waiting_calls?.[0];
  const input = call?.input ?? {};
  const about = input.command ?? input.file_path ?? input.url ?? input.question ?? slot.dialog?.text ?? "";
  return { tool: oneLine(call?.tool ?? slot.dialog?.kind ?? ""), about: oneLine(about) };
}

/** @param {{slot: any, now: number, receipts: any, answered: (text: string) => void}} props */
export function Card({ slot, now, receipts, answered }) {
  const dialog = slot.dialog;
  const id = dialog?.id ?? "";
  const end = useRef(null);
  const [seen, setSeen] = useState("");
  const [alive, setAlive] = useState("");
  const [reason, setReason] = useState("");
  const [words, setWords] = useState("");
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState("");

  useEffect(() => {
    setReason("");
    setWords("");
    setFailed("");
    const timer = setTimeout(() => setAlive(id), DEAD_MS);
    const watch = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) setSeen(id);
      // What is told at the bottom of the page may stand over a quarter of it.
    }, { rootMargin: "0px 0px -25% 0px" });
    if (end.current !== null) watch.observe(end.current);
    return () => {
      clearTimeout(timer);
      watch.disconnect();
    };
  }, [id]);

  const isWhole = dialog === null || dialog.complete || dialog.request !== undefined;
  const not = whyNot("confirm");
  const ready = alive === id && !busy && not === "";
  const mayAllow = ready && seen === id && isWhole && !slot.doubtful;

  /** @param {object} answer */
  const give = async (answer) => {
    setBusy(true);
    setFailed("");
    receipts.given(slot.slot, dialog, answer.answer ?? "own words");
    try {
      const done = await request("confirm", { slot: slot.slot, dialog: id, id: crypto.randomUUID(), ...answer });
      const chosen = answer.answer === "no" ? "denied" : oneLine(done.chosen);
      answered(`${slot.slot}: ${chosen}${done.rule ? `, rule added: ${oneLine(done.rule)}` : ""}`);
    } catch (error) {
      // Also below: if somebody else was first, the card is about to go.
      receipts.refused(id, error.message);
      answered(`${slot.slot}: your answer was not given: ${error.message}`);
      setFailed(`${error.message}${error.next ? ` — ${error.next}` : ""}`);
    } finally {
      setBusy(false);
    }
  };

  const isPermission = dialog !== null && dialog.kind === "permission";
  return html`<section class="card" aria-label="what ${slot.slot} asks">
    <h2>${slot.slot} asks <span class="age">${age(slot.since, now)}</span></h2>
    ${slot.doubtful && html`<p class="doubt" role="alert">Not certain: ${visible(slot.doubtful)}</p>`}
    ${dialog && html`<${Request} tool=${dialog.tool ?? dialog.kind} input=${dialog.input} text=${dialog.text} />`}
    ${(slot.waiting_calls ?? []).map((call) => html`<${Request} tool=${call.tool} input=${call.input} text="" />`)}
    <p class="end" ref=${end}>end of the request${isWhole ? "" : "; the screen shows only a part of it: attach to see all"}</p>
    <${Arguments} slot=${slot} now=${now} />
    ${dialog === null
      ? html`<p class="why">The screen does not show this request: answer it in a terminal with <code>missiond attach ${slot.slot}</code></p>`
      : html`<div class="answers">
          <button class="no" disabled=${!ready} onClick=${() => give({ answer: "no", ...(reason && { reason }) })}>Deny</button>
          ${isPermission && html`<button class="yes" disabled=${!mayAllow} onClick=${() => give({ answer: "yes" })}>Allow once</button>`}
          ${isPermission && slot.always?.rule && html`<button disabled=${!mayAllow || whyNot("always") !== ""} title=${whyNot("always")} onClick=${() => confirm(`Add the rule ${slot.always.rule} for good?`) && give({ answer: "always" })}>Always…</button>`}
          ${!isPermission && dialog.options.map((option) => html`<button disabled=${!mayAllow} onClick=${() => give({ answer: option.label })}>
            ${oneLine(option.label)}${option.description && html`<span class="about">${visible(option.description)}</span>`}
          </button>`)}
        </div>
        ${dialog.kind === "question" && html`<form class="send" onSubmit=${(event) => { event.preventDefault(); give({ text: words }); }}>
          <input value=${words} onInput=${(event) => setWords(event.target.value)} aria-label="an answer of your own" placeholder="An answer of your own…" maxlength="2000" />
          <button disabled=${!mayAllow || words.trim() === ""}>Answer</button>
        </form>`}
        <label class="reason">Why not (is sent to Claude Code with Deny)
          <input value=${reason} onInput=${(event) => setReason(event.target.value)} maxlength="2000" />
        </label>`}
    ${dialog !== null && not !== "" && html`<p class="why">To answer ${not}: <code>missiond web --scope answer</code></p>`}
    ${not === "" && isPermission && slot.always?.rule && whyNot("always") !== "" && html`<p class="why">Always ${whyNot("always")}.</p>`}
    ${failed && html`<p class="failed" role="alert">${visible(failed)}</p>`}
  </section>`;
}

/** @param {{tool: string, input: Record<string, unknown> | null, text: string}} props */
function Request({ tool, input, text }) {
  const rows = input === null || input === undefined ? [["asks", visible(text)]] : parts(input);
  return html`<div class="request">
    <h3>${oneLine(tool)}</h3>
    <dl>${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd><pre>${value}</pre></dd></div>`)}</dl>
  </div>`;
}
