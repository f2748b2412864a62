// A person who may only look goes through all views. Buttons that need more are off, and say so.
import { existsSync, writeFileSync } from "node:fs";

export default async ({ page, context, picture, axe, url, base, marks }) => {
  // The code is good once: the second visit has the token of the first.
  const kept = `${marks}/token`;
  const width = page.viewportSize().width;
  if (existsSync(kept)) {
    const { readFileSync } = await import("node:fs");
    await context.addInitScript((token) => sessionStorage.setItem("missiond.token", token), readFileSync(kept, "utf8"));
    await page.goto(base);
  } else {
    await page.goto(url);
    await page.getByText("touch third").first().waitFor();
    writeFileSync(kept, await page.evaluate(() => sessionStorage.getItem("missiond.token")));
  }
  await page.getByRole("button", { name: /coder/ }).first().click();
  await page.getByText("needs the scope answer").first().waitFor();
  const off = await page.locator("button:disabled").all();
  const buttons = [];
  for (const button of off) {
    if (await button.isEnabled()) throw new Error("a button is on");
    buttons.push(await button.innerText());
  }
  await page.getByRole("tab", { name: "log" }).click();
  const log = page.locator(".log");
  await log.waitFor();
  const told = { buttons, log: await log.innerText() };
  for (const view of ["audit", "sessions", "tasks", "timeline"]) {
    await page.getByRole("button", { name: view, exact: true }).click();
    await page.locator(".list li").first().waitFor();
    await picture(`${view}-${width}`);
    told[view] = await page.locator(".view").innerText();
  }
  // The slider steps back to the request, and shows the screen of then.
  await page.locator(".scrubber .screen").waitFor();
  await page.getByRole("button", { name: "‹ before" }).click();
  await page.locator(".scrubber .screen").getByText("touch third").first().waitFor();
  await page.locator(".events .near").first().waitFor();
  told.scrubbed = await page.locator(".scrubber h3").innerText();
  await picture(`scrubbed-${width}`);
  told.serious = await axe();
  told.wide = await page.evaluate(() => document.documentElement.scrollWidth);
  // What a browser needs to install the page.
  const manifest = await page.evaluate(async () => (await fetch("/assets/manifest.webmanifest")).json());
  for (const icon of manifest.icons) {
    const status = await page.evaluate(async (src) => (await fetch(src)).status, icon.src);
    if (status !== 200) throw new Error(`${icon.src}: ${status}`);
  }
  return told;
};
