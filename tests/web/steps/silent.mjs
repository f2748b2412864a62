// The server falls silent while the page is open, as behind a phone that slept. The page says so, and comes back.
import { existsSync, writeFileSync } from "node:fs";

export default async ({ page, url, marks }) => {
  await page.goto(url);
  await page.getByText("● live").waitFor();
  writeFileSync(`${marks}/seen`, "");
  while (!existsSync(`${marks}/stopped`)) await new Promise((resolve) => setTimeout(resolve, 50));
  const from = performance.now();
  await page.getByText("missiond web is silent: trying again").waitFor();
  const after_s = (performance.now() - from) / 1000;
  writeFileSync(`${marks}/silent`, "");
  await page.getByText("● live").waitFor();
  // What has happened meanwhile is known.
  await page.getByRole("button", { name: /echo.*exited/s }).first().waitFor();
  return { after_s };
};
