// The daemon goes while the page is open, and comes back.
import fs from "node:fs";

export default async ({ page, url, marks }) => {
  await page.goto(url);
  await page.getByText("● live").waitFor();
  fs.writeFileSync(`${marks}/seen`, "");
  await page.getByText("trying again").waitFor();
  // What was known last is still there to see.
  await page.getByRole("button", { name: /echo/ }).first().waitFor();
  fs.writeFileSync(`${marks}/lost`, "");
  await page.getByText("● live").waitFor();
  await page.getByRole("button", { name: /echo/ }).first().waitFor();
};
