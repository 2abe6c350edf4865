/** Returns the faults of mutations: each must match its source exactly once, change it, and have a unique name. */
export function stale(mutations, read) {
  const seen = new Set();
  return mutations.flatMap(({ id, file, find, replace, tests }) => {
    const complaints = [];
    if (seen.has(id)) complaints.push('its id is taken');
    seen.add(id);
    let source;
    try {
      source = read(file);
    } catch {
      return [`${id} ${file}: there is no such file`];
    }
    const times = source.split(find).length - 1;
    if (times !== 1) complaints.push(`${JSON.stringify(find)} occurs ${times} times`);
    if (find === replace) complaints.push('it changes nothing');
    if (!Array.isArray(tests) || tests.length === 0) complaints.push('it names no tests');
    return complaints.map((complaint) => `${id} ${file}: ${complaint}`);
  });
}
