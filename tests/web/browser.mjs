// Plays a person at the page, in Chromium: runs a step of steps/, and prints what it returns as JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { PACKAGES, CHROMIUM, PICTURES, STEP, URL: url, BASE: base, MARKS: marks, WIDTH } = process.env;
const require = createRequire(`${PACKAGES}/`);
const { chromium } = require("playwright-core");

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: Number(WIDTH), height: 900 } });
const page = await context.newPage();
page.setDefaultTimeout(60_000);

// A server that does not answer is for the page to tell; all else that a browser complains about is wrong.
const complaints = [];
const isAnswer = (text) => text.startsWith("Failed to load resource") || /^WebSocket connection .* Unexpected response code: 50\d$/.test(text);
page.on("console", (message) => {
  if (message.type() === "error" && !isAnswer(message.text())) complaints.push(message.text());
});
page.on("pageerror", (error) => complaints.push(String(error)));

/** Keeps a picture for a person to look at, if they have said where. */
const picture = async (name) => {
  if (PICTURES) await page.screenshot({ path: `${PICTURES}/${name}.png` });
};
/** What axe finds that is serious. */
const axe = async () => {
  await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const serious = violations.filter((found) => ["serious", "critical"].includes(found.impact));
  return serious.map((found) => `${found.id}: ${found.nodes[0].html}`);
};

try {
  const { default: step } = await import(`./steps/${STEP}.mjs`);
  const told = await step({ page, context, picture, axe, url, base, marks });
  console.log(JSON.stringify({ told: told ?? null, complaints }));
} finally {
  await browser.close();
}
