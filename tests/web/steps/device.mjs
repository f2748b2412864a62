// A person pairs a phone, closes the page, and opens it again.
export default async ({ page, context, url, base }) => {
  await page.goto(url);
  await page.getByText("● live").waitFor();
  const kept = await page.evaluate(() => [document.cookie, localStorage.length, sessionStorage.length]);
  const again = await context.newPage();
  await page.close();
  await again.goto(base);
  await again.getByText("● live").waitFor();
  return { kept };
};
