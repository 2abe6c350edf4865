import type { OpenApiDocument } from '../openapi.js';

type Json = Readonly<Record<string, unknown>>;

function objectOf(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (Number.isInteger(value)) return 'integer';

  return typeof value;
}

/**
 * Checks responses against an OpenAPI document, independently of the library that made it. Supports the keywords that
 * the document uses and refuses others.
 */
export class Conformance {
  readonly #document: OpenApiDocument;

  constructor(document: OpenApiDocument) {
    this.#document = document;
  }

  /** Returns the faults of a JSON response; empty if it conforms. */
  check(answer: {
    method: string;
    path: string;
    status: number;
    contentType: string | undefined;
    body: unknown;
  }): string[] {
    const operation = this.#operation(answer.method, answer.path);
    if (operation === undefined) return [`${answer.method} ${answer.path} is not documented`];

    const response = objectOf(objectOf(operation['responses'])[String(answer.status)]);
    if (response['description'] === undefined) return [`${answer.status} of ${answer.path} is not documented`];

    const content = response['content'];
    if (content === undefined) return answer.body === '' ? [] : [`${answer.status} should have no body`];

    const type = answer.contentType?.split(';')[0] ?? '';
    const media = objectOf(objectOf(content)[type]);
    if (media['schema'] === undefined) return [`${type} is not documented for ${answer.status} of ${answer.path}`];

    return type === 'application/json' ? this.#problems(answer.body, objectOf(media['schema']), '$') : [];
  }

  #operation(method: string, path: string): Json | undefined {
    const segments =
      path
        .split('?', 1)[0]
        ?.replace(/(?<=.)\/$/, '')
        .split('/') ?? [];

    for (const [template, operations] of Object.entries(objectOf(this.#document.paths))) {
      const parts = template.split('/');
      const fits =
        parts.length === segments.length && parts.every((part, i) => part.startsWith('{') || part === segments[i]);
      const operation = objectOf(operations)[method.toLowerCase()];
      if (fits && operation !== undefined) return objectOf(operation);
    }

    return undefined;
  }

  #problems(value: unknown, schema: Json, at: string): string[] {
    const found: string[] = [];

    for (const [keyword, rule] of Object.entries(schema)) {
      switch (keyword) {
        case '$ref':
          found.push(...this.#problems(value, this.#resolve(String(rule)), at));
          break;
        case 'type': {
          const types = Array.isArray(rule) ? rule : [rule];
          const actual = typeOf(value);
          const fits = types.includes(actual) || (actual === 'integer' && types.includes('number'));
          if (!fits) found.push(`${at} is ${actual}, not ${types.join(' or ')}`);
          break;
        }
        case 'enum':
          if (!(rule as unknown[]).includes(value)) found.push(`${at} is ${String(value)}, not one of ${String(rule)}`);
          break;
        case 'minimum':
          if (typeof value === 'number' && value < Number(rule)) found.push(`${at} is below ${String(rule)}`);
          break;
        case 'anyOf': {
          const branches = (rule as unknown[]).map((branch) => this.#problems(value, objectOf(branch), at));
          if (!branches.some((branch) => branch.length === 0))
            found.push(`${at} fits nothing: ${branches.flat().join(', ')}`);
          break;
        }
        case 'items':
          if (Array.isArray(value)) {
            found.push(...value.flatMap((item, i) => this.#problems(item, objectOf(rule), `${at}[${i}]`)));
          }
          break;
        case 'required':
          for (const key of rule as string[]) {
            if (!Object.hasOwn(objectOf(value), key)) found.push(`${at}.${key} is missing`);
          }
          break;
        case 'properties':
          for (const [key, property] of Object.entries(objectOf(rule))) {
            if (Object.hasOwn(objectOf(value), key)) {
              found.push(...this.#problems(objectOf(value)[key], objectOf(property), `${at}.${key}`));
            }
          }
          break;
        case 'additionalProperties':
          if (rule === false) {
            const known = Object.keys(objectOf(schema['properties']));
            for (const key of Object.keys(objectOf(value)))
              if (!known.includes(key)) found.push(`${at}.${key} is extra`);
          }
          break;
        case 'description':
        case 'examples':
          break;
        default:
          found.push(`${at}: the keyword ${keyword} is not known here`);
      }
    }

    return found;
  }

  #resolve(reference: string): Json {
    const name = reference.replace('#/components/schemas/', '');

    return objectOf(objectOf(objectOf(this.#document.components)['schemas'])[name]);
  }
}
