// @ts-check
// Looking back: what each slot did, and a slider over the recording, the events and the verdicts on one clock.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.mjs";
import { request } from "./api.mjs";
import { Screen } from "./screen.mjs";
import { oneLine, visible } from "./text.mjs";

const PERIODS = [["1 hour", 3600], ["8 hours", 28800], ["1 day", 86400], ["7 days", 604800]];
/** The slider may move over many moments: the one where it rests is asked for. */
const REST_MS = 200;

/** @param {number} ms */
const clock = (ms) => new Date(ms).toLocaleTimeString();
/** @param {number} seconds */
const length = (seconds) => (seconds < 60 ? `${Math.round(seconds)}s` : seconds < 3600 ? `${Math.floor(seconds / 60)}m` : `${(seconds / 3600).toFixed(1)}h`);

export function Timeline() {
  const [period, setPeriod] = useState(3600);
  const [report, setReport] = useState(/** @type {any} */ (null));
  const [chosen, setChosen] = useState("");
  useEffect(() => {
    let isCurrent = true;
    request("timeline", { since_s: period }).then((told) => isCurrent && setReport(told), (error) => isCurrent && setReport({ error }));
    return () => {
      isCurrent = false;
    };
  }, [period]);
  const slots = report?.slots ?? [];
  const slot = slots.find((/** @type {any} */ one) => one.slot === chosen) ?? slots[0];
  return html`<section class="view" aria-label="timeline"><h2>Timeline</h2>
    <label>The last <select value=${period} onChange=${(/** @type {any} */ event) => setPeriod(Number(event.target.value))}>
      ${PERIODS.map(([name, seconds]) => html`<option value=${seconds}>${name}</option>`)}</select></label>
    ${report === null && html`<p class="why">…</p>`}
    ${report?.error && html`<p class="failed">${visible(report.error.message)}</p>`}
    ${report?.slots && html`<${Waited} waiting=${report.waiting} />`}
    ${report?.slots?.length === 0 && html`<p class="why">No slot ran in that time.</p>`}
    <ul class="bands">${slots.map((/** @type {any} */ one) => html`<li key=${one.slot}>
      <button class="band-name" aria-pressed=${one === slot} onClick=${() => setChosen(one.slot)}>${oneLine(one.slot)}</button>
      <${Band} slot=${one} report=${report} /><span class="why">${sums(one)}</span></li>`)}</ul>
    ${slots.length > 0 && html`<p class="why legend">${["works", "waits", "idle", "down"].map((name) => html`<span><i class=${`band-${name}`}></i> ${name} </span>`)}</p>`}
    ${slot && html`<${Scrubber} key=${`${slot.slot} ${report.until}`} slot=${slot} report=${report} />`}
  </section>`;
}

/** @param {any} slot */
const sums = (slot) => {
  const waited = slot.waits.reduce((/** @type {number} */ sum, /** @type {any} */ wait) => sum + Date.parse(wait.end) - Date.parse(wait.begin), 0);
  return slot.waits.length === 0 ? "no asks" : `${slot.waits.length} ask${slot.waits.length === 1 ? "" : "s"}, ${length(waited / 1000)}`;
};

/** @param {{waiting: any}} props */
function Waited({ waiting }) {
  if (waiting.asks === 0) return html`<p class="why">Nobody was waited for.</p>`;
  return html`<p>People were waited for ${length(waiting.seconds)} in ${waiting.asks} asks${waiting.open > 0 ? `, ${waiting.open} still open` : ""}.</p>
    <ul class="list reasons">${waiting.by_reason.slice(0, 5).map((/** @type {any} */ reason) => html`<li>${length(reason.seconds)} in ${reason.asks}: ${reason.rule ? html`<code>${oneLine(reason.rule.text)}</code>` : oneLine(reason.why)}</li>`)}</ul>`;
}

/** @param {{slot: any, report: any}} props */
function Band({ slot, report }) {
  const [since, until] = [Date.parse(report.since), Date.parse(report.until)];
  const share = (/** @type {string} */ begin, /** @type {string} */ end) => `${(100 * (Date.parse(end) - Date.parse(begin))) / (until - since)}%`;
  return html`<span class="band" role="img" aria-label=${`what ${slot.slot} did`}>${slot.spans.map(
    (/** @type {any} */ span) => html`<i class=${`band-${span.activity}`} style=${{ width: share(span.begin, span.end) }}></i>`,
  )}</span>`;
}

/** The moments at which something changed: the slider steps over them. @param {any} slot @param {any} report */
function marks(slot, report) {
  const of = (/** @type {any} */ span) => ({ at: Date.parse(span.begin), what: span.activity });
  const asked = (/** @type {any} */ wait) => [
    { at: Date.parse(wait.begin) + 1000, what: `asks ${wait.about}` },
    ...(wait.open ? [] : [{ at: Date.parse(wait.end), what: `answered: ${wait.answer ?? "gone without an answer"}` }]),
  ];
  const all = [...slot.spans.filter((/** @type {any} */ span) => span.activity !== "unknown").map(of), ...slot.waits.flatMap(asked), { at: Date.parse(report.until), what: "the end" }];
  return all.filter(({ at }) => at >= Date.parse(report.since)).sort((a, b) => a.at - b.at);
}

/** @param {{slot: any, report: any}} props */
function Scrubber({ slot, report }) {
  const [since, until] = [Date.parse(report.since), Date.parse(report.until)];
  const [at, setAt] = useState(until);
  const [past, setPast] = useState(/** @type {any} */ (null));
  const asked = useRef(0);
  useEffect(() => {
    const number = (asked.current += 1);
    const timer = setTimeout(async () => {
      const told = await request("past", { slot: slot.slot, at: new Date(at).toISOString() }).catch((error) => ({ error }));
      if (number === asked.current) setPast(told);
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [at]);
  const all = marks(slot, report);
  const before = all.findLast((mark) => mark.at < at);
  const after = all.find((mark) => mark.at > at);
  const now = all.findLast((mark) => mark.at <= at);
  return html`<div class="scrubber" aria-label="looking back">
    <h3>${oneLine(slot.slot)} at ${clock(at)} <span class="why">${now ? oneLine(now.what) : ""}</span></h3>
    <input type="range" min=${since} max=${until} step="1000" value=${at} aria-label="moment" aria-valuetext=${clock(at)} onInput=${(/** @type {any} */ event) => setAt(Number(event.target.value))} />
    <div class="tabs"><button disabled=${!before} onClick=${() => before && setAt(before.at)}>‹ before</button><button disabled=${!after} onClick=${() => after && setAt(after.at)}>next ›</button></div>
    ${past === null && html`<p class="why">…</p>`}
    ${past?.error && html`<p class="failed">${visible(past.error.message)}</p>`}
    ${past?.screen && html`<${Screen} screen=${past.screen} name=${`screen of ${slot.slot} at ${clock(at)}`} />`}
    ${past && !past.error && !past.screen && html`<p class="why">No recording of that time is kept.</p>`}
    ${past?.events && html`<ul class="list events">${past.events.map((/** @type {any} */ event) => html`<li class=${Math.abs(Date.parse(event.time) - at) < 2000 ? "near" : ""}>
      <button onClick=${() => setAt(Math.min(until, Math.max(since, Date.parse(event.time))))}>${clock(Date.parse(event.time))}</button> <${Told} event=${event} /></li>`)}</ul>`}
    ${past?.events?.length === 0 && html`<p class="why">Nothing happened within five minutes.</p>`}
  </div>`;
}

/** @param {{event: any}} props */
function Told({ event }) {
  if (event.event === "verdict")
    return html`<span class=${`verdict ${event.verdict}`}>${event.verdict}</span> ${oneLine(`${event.tool} ${event.target}`)} <span class="why">${oneLine(event.why)}${event.rule ? html` <code>${oneLine(event.rule.text)}</code> ${oneLine(`${event.rule.file.split("/").pop()}:${event.rule.line}`)}` : ""}</span>`;
  const words = { state: () => `${event.from} → ${event.to}`, dialog: () => `asks ${event.dialog.tool ?? event.dialog.kind}`, key: () => `${event.key} — ${event.reason}` };
  const rest = words[event.event]?.() ?? event.text ?? event.why ?? event.cause ?? event.target ?? "";
  return html`<b>${oneLine(event.event.replace("_", " "))}</b> ${oneLine(rest).slice(0, 300)}`;
}
