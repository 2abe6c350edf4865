// Runs axe-core on a page, in any browser.
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** axe-core as a function, which every browser driver can evaluate. */
const LOAD = new Function(axe.source) as () => void;

type Scheme = 'dark' | 'light';

/** Shows the page as to a person who prefers this scheme. WebDriver BiDi has no command for that in Firefox. */
async function prefer(page: Page, scheme: Scheme): Promise<void> {
  if (page.emulateMedia !== undefined) return page.emulateMedia({ colorScheme: scheme });
  await page.evaluate((wanted) => {
    document.documentElement.style.colorScheme = wanted;
    for (const { cssRules } of document.styleSheets) {
      for (const rule of cssRules) {
        if (!(rule instanceof CSSMediaRule)) continue;
        // The rule is found again by its first condition after the text is overwritten.
        const media = rule.media as MediaList & { scheme?: string };
        media.scheme ??= /^\(prefers-color-scheme: ?(dark|light)\)$/.exec(rule.conditionText)?.[1] ?? '';
        if (media.scheme !== '') media.mediaText = media.scheme === wanted ? 'all' : 'not all';
      }
    }
  }, scheme);
}

/**
 * Returns a line for each element that breaks a rule, in each colour scheme.
 *
 * @throws Error for a page that looks the same in two schemes, so that no scheme is left unchecked
 */
export async function axeFindings(page: Page, schemes: readonly Scheme[] = ['dark', 'light']): Promise<string[]> {
  const found: string[] = [];
  const backgrounds = new Set<string>();
  for (const scheme of schemes) {
    await prefer(page, scheme);
    backgrounds.add(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor));
    // Colours on their way from one scheme to the other are of neither.
    await page.evaluate(() => {
      for (const one of document.getAnimations()) if (one instanceof CSSTransition) one.finish();
    });
    if (backgrounds.size <= schemes.indexOf(scheme)) throw new Error(`the page has no ${scheme} colours`);
    await page.evaluate(LOAD);
    const { violations } = await page.evaluate(() =>
      (globalThis as unknown as { axe: typeof axe }).axe.run({
        // The one rule of WCAG 2.2 AA that axe leaves out by default.
        rules: { 'target-size': { enabled: true } },
      }),
    );
    for (const { id, nodes } of violations) {
      for (const { html, failureSummary } of nodes) found.push(`${scheme}: ${id}: ${html} ${failureSummary}`);
    }
  }
  return found;
}
