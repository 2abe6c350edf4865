import { createHash } from 'node:crypto';

/**
 * Members in the order in which they decide about an id (highest random weight): all that see the same members agree,
 * and a member that joins or leaves moves only its own share of the ids.
 */
export function homesOf(id: string, members: readonly string[]): string[] {
  return members
    .map((member) => ({ member, weight: createHash('sha1').update(`${member}\0${id}`).digest('hex') }))
    .toSorted((a, b) => (a.weight < b.weight ? 1 : -1))
    .map(({ member }) => member);
}
