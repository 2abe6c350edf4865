/** `*` stands for any part of one segment, `**` for any part; a leading slash does not count. */
export function matches(pattern: string, path: string): boolean {
  const source = pattern
    .replace(/^\//, '')
    .split(/(\*\*|\*)/)
    .map((part) =>
      part === '**' ? '.*' : part === '*' ? '[^/]*' : part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`),
    )
    .join('');
  return new RegExp(`^${source}$`, 's').test(path.replace(/^\//, ''));
}
