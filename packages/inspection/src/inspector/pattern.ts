/** Returns a path without its leading slash, the form in which paths are compared. */
export function plainPath(path: string): string {
  return path.startsWith('/') ? path.slice(1) : path;
}

export function isPattern(text: string): boolean {
  return text.includes('*');
}

/** Returns a matcher for paths. Each `*` of the pattern matches any text. Takes at most length * length steps. */
export function matcher(pattern: string): (path: string) => boolean {
  const wanted = plainPath(pattern);
  if (!isPattern(wanted)) return (path) => plainPath(path) === wanted;

  return (path) => fits(wanted, plainPath(path));
}

function fits(pattern: string, text: string): boolean {
  let p = 0;
  let t = 0;
  /** Where to resume when the text after the last star does not match. */
  let star = -1;
  let mark = 0;
  while (t < text.length) {
    if (pattern[p] === '*') {
      star = p++;
      mark = t;
    } else if (pattern[p] === text[t]) {
      p++;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      t = ++mark;
    } else return false;
  }
  while (pattern[p] === '*') p++;

  return p === pattern.length;
}
