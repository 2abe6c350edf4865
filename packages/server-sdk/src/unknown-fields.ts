/** Names the fields of a request body that the server does not know. */
const UNKNOWN_FIELDS_HEADER = 'x-bloom-unknown-fields';
/** Bound on the names remembered: a program may build them from its users' input. */
const MAX_REMEMBERED = 1_000;

/** Warns of fields that the server ignored, once per field: usually a misspelt option. */
export class UnknownFields {
  readonly #warned = new Set<string>();

  warn(call: string, headers: Pick<Headers, 'get'>): void {
    for (const field of (headers.get(UNKNOWN_FIELDS_HEADER) ?? '').split(', ')) {
      if (field === '' || this.#warned.has(field) || this.#warned.size >= MAX_REMEMBERED) continue;
      this.#warned.add(field);
      // oxlint-disable-next-line no-console -- the only channel that reaches a developer on every runtime
      console.warn(`Bloom ignored an unknown field in ${call}: ${field}`);
    }
  }
}
