import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { structuralKey } from './compare.js';
import { atom, atomMap, decode, encode, Float, mapGet, Pid, type Term, tuple } from './index.js';
import { anyTerm } from './testing/terms.js';

const run = promisify(execFile);

const hasErlang = await run('erl', ['-noshell', '-eval', 'halt().']).then(
  () => true,
  () => false,
);
if (!hasErlang) {
  // oxlint-disable-next-line no-console
  console.warn('SKIPPED: no erl on this machine; install it with: apt-get install erlang-base');
}

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bloom-etf-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

// Reads [size:32, bytes]..., passes each of the bytes to F, and writes its binary answers in the same form.
const BATCH = `
  {ok, All} = file:read_file(In),
  Out = [begin R = F(B), [<<(byte_size(R)):32>>, R] end || <<N:32, B:N/binary>> <= All],
  ok = file:write_file(To, Out), halt().`;

async function erlang(fun: string, inputs: readonly Buffer[]): Promise<Buffer[]> {
  const from = join(folder, 'in');
  const to = join(folder, 'out');
  await writeFile(from, Buffer.concat(inputs.flatMap((bytes) => [size(bytes), bytes])));
  await run('erl', ['-noshell', '-eval', `In = "${from}", To = "${to}", F = ${fun}, ${BATCH}`], { timeout: 60_000 });
  const all = await readFile(to);
  const answers: Buffer[] = [];
  for (let at = 0; at < all.length; ) {
    const end = at + 4 + all.readUInt32BE(at);
    answers.push(all.subarray(at + 4, end));
    at = end;
  }
  return answers;
}

function size(bytes: Buffer): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(bytes.length);
  return head;
}

(hasErlang ? describe : describe.skip)('with a real Erlang [needs erlang]', () => {
  test('sends terms that Erlang receives exactly as sent', async () => {
    const cases: [Term, string][] = [
      [1, '1'],
      [1.5, '1.5'],
      [new Float(2), '2.0'],
      [-1, '-1'],
      [1099511627776, '1099511627776'],
      [2n ** 70n, '1 bsl 70'],
      [-(2n ** 3_000n), '-(1 bsl 3000)'],
      ['str', '<<"str">>'],
      ['zażółć', '<<"zażółć"/utf8>>'],
      [true, 'true'],
      [null, 'nil'],
      [undefined, 'undefined'],
      [atom('héllo wörld'), "'héllo wörld'"],
      [{ a: 1 }, '#{<<"a">> => 1}'],
      [atomMap({ a: [tuple(), tuple(1)] }), '#{a => [{}, {1}]}'],
    ];
    const text = cases.map(([, expression]) => expression).join(', ');
    const answers = await erlang(
      `begin put(todo, [${text}]), fun(B) -> [E|Rest] = get(todo), put(todo, Rest),
         atom_to_binary(binary_to_term(B) =:= E) end end`,
      cases.map(([term]) => encode(term)),
    );
    expect(answers.map(String)).toEqual(cases.map(() => 'true'));
  });

  test('returns random terms through binary_to_term and term_to_binary', async () => {
    const terms = fc.sample(anyTerm, { numRuns: fuzzRuns(2_000), seed: 20 });
    const answers = await erlang('fun(B) -> term_to_binary(binary_to_term(B)) end', terms.map(encode));
    expect(answers).toHaveLength(terms.length);
    terms.forEach((term, i) => {
      expect(structuralKey(decode(answers[i] as Buffer, { floats: 'wrap' }))).toBe(structuralKey(term));
    });
  });

  test('returns random terms in the older and compressed forms', async () => {
    const terms = fc.sample(anyTerm, { numRuns: fuzzRuns(500), seed: 21 });
    const options = { floats: 'wrap', maxInflatedBytes: 1_000_000 } as const;
    for (const form of ['[{minor_version, 0}]', '[{minor_version, 1}]', '[compressed]', '[deterministic]']) {
      const fun = `fun(B) -> T = binary_to_term(B), try term_to_binary(T, ${form}) catch _:_ -> term_to_binary(T) end end`;
      const answers = await erlang(fun, terms.map(encode));
      terms.forEach((term, i) => {
        expect(structuralKey(decode(answers[i] as Buffer, options))).toBe(structuralKey(term));
      });
    }
  }, 30_000);

  test('reads pids, references, ports, funs and maps from Erlang and returns them unchanged', async () => {
    const [bytes] = await erlang(
      `fun(_) -> X = 1, term_to_binary(#{pid => self(), ref => make_ref(), port => hd(erlang:ports()),
         'fun' => fun(A) -> A + X end, export => fun lists:map/2, bits => <<5:3>>, big => maps:from_list([{I, I} || I <- lists:seq(1, 100)]),
         chars => "abc", improper => [a | b]}) end`,
      [Buffer.alloc(0)],
    );
    const term = decode(bytes as Buffer);
    expect(mapGet(term, atom('pid'))).toBeInstanceOf(Pid);
    expect(mapGet(term, atom('chars'))).toEqual([97, 98, 99]);
    expect((mapGet(term, atom('big')) as Map<Term, Term>).size).toBe(100);
    const [same] = await erlang('fun(B) -> term_to_binary(binary_to_term(B)) end', [encode(term)]);
    expect(structuralKey(decode(same as Buffer))).toBe(structuralKey(term));
  });

  test('refuses changed bytes of real terms wherever Erlang does', async () => {
    // We are stricter in places (limits, duplicate keys), but we must not read what Erlang cannot.
    const edited = fc.sample(
      fc.tuple(anyTerm, fc.nat(), fc.nat(255)).map(([term, at, value]) => {
        const bytes = encode(term);
        bytes[1 + (at % (bytes.length - 1))] = value;
        return bytes;
      }),
      { numRuns: fuzzRuns(1_500), seed: 22 },
    );
    const verdicts = await erlang(
      'fun(B) -> try binary_to_term(B, [used]) of {_, N} when N =:= byte_size(B) -> <<"ok">>; _ -> <<"no">> catch _:_ -> <<"no">> end end',
      edited,
    );
    const wrong = edited.filter((bytes, i) => String(verdicts[i]) === 'no' && accepts(bytes) && !knownLeniency(bytes));
    expect(wrong.map((bytes) => bytes.toString('hex'))).toEqual([]);
  });
});

function accepts(bytes: Buffer): boolean {
  try {
    decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** Funs are opaque to us: only their size is checked. */
function knownLeniency(bytes: Buffer): boolean {
  return bytes.includes(112);
}
