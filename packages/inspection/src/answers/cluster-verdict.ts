import type { LinkLine } from '../sources.js';

export interface View {
  node: string;
  links: readonly LinkLine[];
}

export interface Verdict {
  verdict: 'whole' | 'partial' | 'split';
  /** Nodes linked with each other, directly or through others; largest group first. */
  groups: string[][];
  /** Pairs without a link, lower name first. */
  missing: [string, string][];
}

/**
 * Combines the views of all nodes. A link counts when every end that answered reports it as up. Known members that did
 * not answer are judged by what the others report.
 */
export function judge(views: readonly View[]): Verdict {
  const seen = new Map(views.map(({ node, links }) => [node, new Map(links.map((link) => [link.node, link]))]));
  const nodes = new Set(seen.keys());
  for (const { links } of views) for (const { node, kind } of links) if (kind === 'member') nodes.add(node);
  const names = [...nodes].toSorted();
  const isUp = (a: string, b: string): boolean => {
    const ends = [seen.get(a)?.get(b), seen.get(b)?.get(a)];
    const said = [seen.has(a), seen.has(b)];
    return said.includes(true) && ends.every((link, i) => !said[i] || link?.state === 'up');
  };

  const missing: [string, string][] = [];
  const groupOf = new Map(names.map((name) => [name, new Set([name])]));
  names.forEach((a, i) => {
    for (const b of names.slice(i + 1)) {
      if (!isUp(a, b)) {
        // A link between two silent nodes is unknown.
        if (seen.has(a) || seen.has(b)) missing.push([a, b]);
        continue;
      }
      const joined = new Set([...(groupOf.get(a) ?? []), ...(groupOf.get(b) ?? [])]);
      for (const name of joined) groupOf.set(name, joined);
    }
  });
  const groups = [...new Set(groupOf.values())].map((group) => [...group].toSorted());
  groups.sort((a, b) => b.length - a.length || ((a[0] ?? '') < (b[0] ?? '') ? -1 : 1));

  return { verdict: groups.length > 1 ? 'split' : missing.length > 0 ? 'partial' : 'whole', groups, missing };
}
