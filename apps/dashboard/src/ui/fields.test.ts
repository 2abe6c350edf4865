import { expect, test } from '@jest/globals';
import { type Field, optionsOf } from './fields.js';

const FIELDS: readonly Field[] = [
  { name: 'maxPeers', label: '', kind: 'number' },
  { name: 'lowLatency', label: '', kind: 'boolean' },
  { name: 'dataEvents', label: '', kind: 'list' },
  { name: 's3.bucket', label: '' },
  { name: 's3.region', label: '' },
];

function form(values: Record<string, string>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(values)) data.set(name, value);
  return data;
}

test('turns filled-in fields into options of their type, nested by their path', () => {
  expect(optionsOf(FIELDS, form({ maxPeers: '4', lowLatency: 'on', 's3.bucket': ' b ', 's3.region': 'eu' }))).toEqual({
    maxPeers: 4,
    lowLatency: true,
    s3: { bucket: 'b', region: 'eu' },
  });
});

test('leaves empty fields to the server', () => {
  expect(optionsOf(FIELDS, form({ maxPeers: ' ', 's3.bucket': '' }))).toEqual({});
});

test('accepts a list that ends with a comma, and treats one with only commas as empty', () => {
  expect(optionsOf(FIELDS, form({ dataEvents: 'chat, files,' }))).toEqual({ dataEvents: ['chat', 'files'] });
  expect(optionsOf(FIELDS, form({ dataEvents: ' , ' }))).toEqual({});
});
