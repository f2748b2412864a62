// Another ask comes under the pointer just when a person clicks a second time.
export default async ({ page, url }) => {
  await page.goto(url);
  await page.getByText("touch first").first().waitFor();
  await page.evaluate(() => {
    globalThis.seen = null;
    new MutationObserver(() => {
      const asked = document.querySelector(".request pre")?.textContent;
      const buttons = [...document.querySelectorAll(".answers button")];
      if (asked !== "touch second" || buttons.length === 0 || globalThis.seen !== null) return;
      globalThis.seen = buttons.map((button) => button.disabled);
      buttons.forEach((button) => button.click());
    }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
  });
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.waitForFunction(() => globalThis.seen !== null);
  // A person who has read it may answer.
  await page.waitForFunction(() => !document.querySelector(".answers .no").disabled);
  return { off: await page.evaluate(() => globalThis.seen) };
};
