// Runs axe-core on a page, in any browser.
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** axe-core as a function, which every browser driver can evaluate. */
const LOAD = new Function(axe.source) as () => void;

/** Returns a line for each element that breaks a rule, in each colour scheme. The page must not animate colours. */
export async function axeFindings(
  page: Page,
  schemes: readonly ('dark' | 'light')[] = ['dark', 'light'],
): Promise<string[]> {
  const found: string[] = [];
  for (const scheme of schemes) {
    await page.evaluate((wanted) => {
      document.documentElement.style.colorScheme = wanted;
    }, scheme);
    await page.evaluate(LOAD);
    const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
    for (const { id, nodes } of violations) {
      for (const { html, failureSummary } of nodes) found.push(`${scheme}: ${id}: ${html} ${failureSummary}`);
    }
  }
  return found;
}
