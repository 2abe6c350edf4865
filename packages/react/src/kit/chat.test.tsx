import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { renderToStaticMarkup } from 'react-dom/server';
import { withLinks } from './chat.js';

const linksIn = (text: string): string[] =>
  [...renderToStaticMarkup(<>{withLinks(text)}</>).matchAll(/href="([^"]*)"/g)].map(([, address]) => address ?? '');

describe('addresses in a message', () => {
  test.each([
    ['see https://example.com/a?b=1.', ['https://example.com/a?b=1']],
    ['(http://localhost:3000/x)', ['http://localhost:3000/x']],
    ['HTTPS://EXAMPLE.COM and http://b.example', ['HTTPS://EXAMPLE.COM', 'http://b.example']],
    ['no address, ftp://example.com', []],
    ['javascript:alert(1) data:text/html,x', []],
    ['https://', []],
  ])('finds the links in %j', (text, links) => {
    expect(linksIn(text)).toEqual(links);
  });

  test('addresses open in another window, which learns nothing about the call', () => {
    const html = renderToStaticMarkup(<>{withLinks('https://a.example')}</>);
    expect(html).toContain('target="_blank" rel="noopener noreferrer nofollow"');
  });

  test('never change the text, and never lead anywhere but to the web', () => {
    const words = fc.constantFrom('https://', 'http://a', 'javascript:', '<b>', '"', '.', ' ', 'x', '\n', '&');
    fc.assert(
      fc.property(fc.array(fc.oneof(words, fc.string())), (parts) => {
        const text = parts.join('');
        const html = renderToStaticMarkup(<>{withLinks(text)}</>);
        expect(html.replaceAll(/<a [^>]*>|<\/a>/g, '')).toBe(renderToStaticMarkup(<>{text}</>));
        for (const address of linksIn(text)) expect(address).toMatch(/^https?:\/\//i);
      }),
      { numRuns: fuzzRuns(300) },
    );
  });
});
