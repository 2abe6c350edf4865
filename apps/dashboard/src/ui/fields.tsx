import { useId } from 'react';

/** One option of a request, shown as a form field. */
export interface Field {
  /** Path in the JSON, such as `s3.bucket`. */
  readonly name: string;
  readonly label: string;
  /** Lists are separated by commas. */
  readonly kind?: 'text' | 'number' | 'url' | 'boolean' | 'password' | 'list';
  /** Values to choose from; '' leaves the choice to the server. */
  readonly options?: readonly string[];
  readonly hint?: string;
  readonly required?: boolean;
  /** The required pattern of a text; the hint describes it in words. */
  readonly pattern?: string;
  /** Minimum and maximum number; the minimum is 0 by default. */
  readonly min?: number;
  readonly max?: number;
  readonly initial?: string;
}

export function Fields({ fields }: { readonly fields: readonly Field[] }) {
  return fields.map((field) => <FieldInput key={field.name} field={field} />);
}

function FieldInput({ field }: { readonly field: Field }) {
  const { name, label, kind = 'text', options, hint, required = false, pattern, min = 0, max, initial } = field;
  const id = useId();
  const described = hint === undefined ? {} : { 'aria-describedby': `${id}-hint` };
  if (kind === 'boolean') {
    return (
      <label className="check">
        <input type="checkbox" name={name} defaultChecked={initial === 'true'} {...described} />
        <span>{label}</span>
        {hint !== undefined && (
          <span className="hint" id={`${id}-hint`}>
            {hint}
          </span>
        )}
      </label>
    );
  }
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {options === undefined ? (
        <input
          id={id}
          name={name}
          type={kind === 'list' ? 'text' : kind}
          required={required}
          pattern={pattern}
          title={pattern === undefined ? undefined : hint}
          {...(kind === 'number' ? { min, max } : {})}
          defaultValue={initial}
          autoComplete="off"
          spellCheck={false}
          {...described}
        />
      ) : (
        <select id={id} name={name} defaultValue={initial} {...described}>
          {options.map((option) => (
            <option key={option} value={option}>
              {option === '' ? 'default' : option}
            </option>
          ))}
        </select>
      )}
      {hint !== undefined && (
        <span className="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  );
}

/** Returns the options that a person filled in. Empty fields are left to the server. */
export function optionsOf(fields: readonly Field[], form: FormData): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (const field of fields) {
    const value = valueOf(field, form);
    if (value === null) continue;
    const path = field.name.split('.');
    const last = path.pop() as string;
    let at = options;
    for (const part of path) at = (at[part] ??= {}) as Record<string, unknown>;
    at[last] = value;
  }
  return options;
}

/** Returns the value that a person entered in a field; null if it is empty. */
export function valueOf({ name, kind }: Field, form: FormData): true | number | string | string[] | null {
  const given = form.get(name);
  const text = typeof given === 'string' ? given.trim() : '';
  if (text === '') return null;
  if (kind === 'list') {
    const items = text.split(',').flatMap((item) => item.trim() || []);
    return items.length === 0 ? null : items;
  }
  return kind === 'boolean' ? true : kind === 'number' ? Number(text) : text;
}
