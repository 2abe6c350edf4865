/** Addresses of an account, and phone numbers as people write them. */
import { isIP } from 'node:net';
import { printable, SipError } from '../errors.js';
import { hostText } from '../values.js';
import type { Credentials } from '../digest.js';
import type { Account } from './dialog.js';

/** Characters that need no escape in the user part of a URI (RFC 3261 section 25.1). */
const plainUser = /[A-Za-z0-9\-_.!~*'()&=+$,;?/]/;

export function escapeUser(user: string): string {
  let text = '';
  // Half of a surrogate pair, which JSON allows, has no escape.
  for (const char of Buffer.from(user).toString()) text += plainUser.test(char) ? char : encodeURIComponent(char);
  return text;
}

export function addressOfRecord(account: Account): string {
  return `sip:${escapeUser(account.username)}@${hostText(account.domain)}`;
}

/** Returns the Request-URI of REGISTER. */
export function registrarUri(account: Account): string {
  return `sip:${hostPart(account)}`;
}

export function numberUri(account: Account, number: string): string {
  return `sip:${escapeUser(number)}@${hostPart(account)}`;
}

function hostPart(account: Account): string {
  const port = account.port === undefined ? '' : `:${account.port}`;
  const transport = account.transport === undefined ? '' : `;transport=${account.transport.toLowerCase()}`;
  return `${hostText(account.domain)}${port}${transport}`;
}

/** `+49 (30) 12-34.5` -> `+493012345`: drops dashes, dots, brackets and whitespace. @throws SipError SIP_BAD_NUMBER */
export function parsePhoneNumber(text: string): string {
  const number = text.replaceAll(/[-.()[\]{}\s]/g, '');
  if (!/^\+?\d{1,64}$/.test(number))
    throw new SipError('SIP_BAD_NUMBER', `${printable(text)} is not a telephone number`);
  return number;
}

/** Rejects control characters, which could end a header field. @throws SipError SIP_MALFORMED */
export function checkCredentials({ username, password }: Credentials): void {
  // Do not show the text: it may be the password.
  for (const [what, text] of Object.entries({ username, password })) {
    // oxlint-disable-next-line no-control-regex
    if (/[\u0000-\u001f\u007f]/.test(text))
      throw new SipError('SIP_MALFORMED', `the ${what} contains a control character`);
  }
}

/** `host`, `host:port`, `1.2.3.4:5070` -> domain and port. @throws SipError SIP_MALFORMED */
export function parseRegistrar(text: string): { domain: string; port: number | undefined } {
  const match = /^(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?$/.exec(text);
  const port = match?.[2] === undefined ? undefined : Number(match[2]);
  const host = match?.[1] ?? '';
  const domain = host.startsWith('[') ? host.slice(1, -1) : host;
  if (!match || (host.startsWith('[') && isIP(domain) !== 6) || (port !== undefined && (port < 1 || port > 65_535)))
    throw new SipError('SIP_MALFORMED', `${printable(text)} is not a registrar address`);
  return { domain, port };
}
