// A person with a phone opens what is asked, and says yes.
export default async ({ page, picture, url }) => {
  await page.goto(url);
  await page.getByRole("button", { name: /coder/ }).first().click();
  await page.getByText("end of the request").waitFor();
  const yes = page.getByRole("button", { name: "Allow once" });
  const { height } = await yes.boundingBox();
  await picture("phone");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  await yes.click();
  await page.getByText("coder: Yes").waitFor();
  // The receipt goes on until the tool has run.
  const receipt = page.locator(".receipts li").first();
  await receipt.getByText(/^ran ✓/).waitFor();
  await picture("receipt");
  const steps = await receipt.innerText();
  return { wide, height, steps };
};
