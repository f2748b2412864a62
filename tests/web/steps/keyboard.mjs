// A person takes the keyboard, types, is outdone by another page, takes it back, and gives it back by closing the page.
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const waitFor = async (is) => {
  for (;;) {
    if (is()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

export default async ({ page, context, picture, axe, url, base, marks }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: base });
  const written = [];
  const watch = (one) => one.on("request", (sent) => sent.url().endsWith("/api/write") && written.push(JSON.parse(sent.postData())));
  watch(page);
  await page.goto(url);
  await page.getByText("● live").waitFor();
  const title = await page.title();
  await page.getByRole("button", { name: /seen/ }).first().click();
  await page.locator(".screen").getByText("ready").waitFor();
  const size = await page.locator(".screen").getAttribute("aria-label");
  // A key before the keyboard is taken goes nowhere.
  await page.locator(".screen").press("z");
  await page.getByRole("button", { name: "Take keyboard" }).click();
  await page.getByText("You have the keyboard:").waitFor();
  const serious = await axe();
  await picture("keyboard");
  await page.evaluate(() => navigator.clipboard.writeText("mine"));
  await page.locator(".screen").press("x");
  // The program prints what a terminal would answer. It ends with a word.
  await page.locator(".screen").getByText("printed").waitFor();
  await page.evaluate(() => new Promise((resolve) => setTimeout(() => requestAnimationFrame(resolve), 0)));
  const harmless = {
    title: (await page.title()) === title,
    clipboard: await page.evaluate(() => navigator.clipboard.readText()),
    links: await page.locator(".screen a, .screen img").count(),
    size: (await page.locator(".screen").getAttribute("aria-label")) === size,
    written: written.map(({ bytes }) => String.fromCharCode(...bytes)),
  };

  // Another page, of the same person.
  const token = await page.evaluate(() => sessionStorage.getItem("missiond.token"));
  await context.addInitScript((kept) => sessionStorage.setItem("missiond.token", kept), token);
  const other = await context.newPage();
  watch(other);
  await other.goto(base);
  await other.getByRole("button", { name: /seen/ }).first().click();
  await other.getByText("web has the keyboard").waitFor();
  await other.getByRole("button", { name: "Take keyboard" }).click();
  await other.getByText("You have the keyboard:").waitFor();
  await page.getByText("you have the keyboard no more").waitFor();
  await page.getByText("web has the keyboard").waitFor();
  await page.locator(".screen").press("z");
  await other.locator(".screen").press("Control+q");
  await other.getByText("the keyboard is free").waitFor();
  await other.getByRole("button", { name: "Take keyboard" }).click();
  await other.getByText("You have the keyboard:").waitFor();
  await other.locator(".screen").press("ArrowUp");
  await other.locator(".screen").press("Control+d");
  // A paste with a line break would be sent by it.
  const paste = (text) =>
    other.locator(".screen").evaluate((screen, pasted) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", pasted);
      screen.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }, text);
  await paste("two\nlines");
  await other.getByText("a paste with line breaks").waitFor();
  await paste("pasted é");
  writeFileSync(`${marks}/held`, "");
  await waitFor(() => existsSync(`${marks}/seen-held`));
  await other.close({ runBeforeUnload: true });
  await waitFor(() => existsSync(`${marks}/freed`));
  return { serious, harmless, written: written.map(({ bytes }) => String.fromCharCode(...bytes)) };
};
