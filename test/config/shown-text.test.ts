import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/file.ts';
import { reportProblems } from '../../src/config/report.ts';
import { quoted, redactedLine, redactedValue } from '../../src/platform/log/redacted-text.ts';
import type { Problem } from '../../src/platform/problems.ts';

const KNOWN = ['name', 'upstream', 'dir', 'hosts'];
const shown = (line: string, outer?: string) => redactedLine(line, (key) => KNOWN.includes(key), outer).text;

describe('a short secret', () => {
  it.each([
    ['credentials[0].dir', 'hunter2'],
    ['credentials[0].dir', 'two words'],
    ['TOKEN_SIDECAR_CREDENTIALS_DIR', 'hunter2'],
    ['--credentials-dir', 'Pa$$word'],
    ['credentials[0].egressProxy.credentialsDir', 'shop:hunter2'],
    ['routes[0].tls.keyFile', 'hunter2'],
    ['credentials[0].clientAuth', 'hunter2'],
    ['routes[0].existingAuthorization', 'hunter2'],
    ['routes[0].whenTokenUnavailable', 'hunter2'],
    ['credentials[0].tokenType', 'hunter2'],
    ['logLevel', 'hunter2'],
    ['TOKEN_SIDECAR_LOG_LEVEL', 'hunter2'],
    ['--access-log', 'Pa$$word'],
    ['credentials[0].name', 'Pa$$word'],
    ['routes[0].credential', 'hunter2!'],
    ['TOKEN_SIDECAR_REALM', 'hunter#2'],
    ['routes[0].upstream', 'correct horse battery'],
    ['routes[0].upstream', '/correct horse battery!'],
  ])('that was given for %s is described: %s', (key, value) => {
    expect(quoted(value, key)).toBe(`a text of ${value.length} characters`);
  });

  it.each([
    ['Bearer hunter2', 'Bearer …'],
    ['DPoP hunter2', 'DPoP …'],
    ['basic c2hvcDpo', 'basic …'],
    ['X-Api-Key: hunter2', 'X-Api-Key: …'],
    ['shop:hunter2@proxy.corp:3128', '…@proxy.corp:3128'],
    ['http://shop:correct horse@proxy.corp:3128', 'http://…@proxy.corp:3128'],
    ['sso.test/token?secret=hunter2', 'sso.test/token?…'],
    ['https://sso.test/token?secret=correct horse', 'https://sso.test/token?…'],
  ])('is left out of %s', (value, expected) => {
    expect(redactedValue(value, 'routes[0].upstream')).toBe(expected);
  });

  it.each([
    ['credentials[0].dir', 'secrets/token-sidecar'],
    ['credentials[0].dir', '.'],
    ['routes[0].tls.keyFile', 'client.key'],
    ['routes[0].tls.caFile', 'ca-2026.pem'],
    ['--clients-file', 'clients2.yaml'],
    ['credentials[0].clientAuth', 'basic'],
    ['logLevel', 'debgu'],
    ['logLevel', '30'],
    ['credentials[0].name', 'My API v2'],
    ['routes[0].credential', 'orders&payments'],
    ['routes[0].protocol', 'http/2'],
    ['routes[0].timeouts.response', 'one minute'],
    ['credentials[0].scope', 'read write admin'],
    ['limits.header', '64KB'],
    ['listen', 'localhost: 8080'],
    ['(file)', 'a number'],
  ])('is nothing that belongs to %s: %s', (key, value) => {
    expect(redactedValue(value, key)).toBe(value);
  });
});

describe('a value', () => {
  it.each([
    ['ftp://x', 'ftp://x'],
    ['https://shop:hunter2@sso.example.com/a', 'https://…@sso.example.com/a'],
    ['https://shop:hun/ter@2@sso.example.com', 'https://…@sso.example.com'],
    ['https://a.example.com/users/a@b/x', 'https://a.example.com/users/a@b/x'],
    ['https://[::1]/users/@me', 'https://[::1]/users/@me'],
    ['https://a.example.com/x?mail=a@b', 'https://a.example.com/x?…'],
    ['https://a.example.com/x#a@b', 'https://a.example.com/x?…'],
    ['https://shop.test:12/hunter@b.example.com', 'https://…@b.example.com'],
    ['https://shop/hunter2@b.example.com', 'https://…@b.example.com'],
    ['https://a.test/x https://shop:hunter2@b.test', 'https://…@b.test'],
    ['https://a.test/x//shop:hunter2@b.test', 'https://…@b.test'],
    ['https://a.test\\\\shop:hunter2@b.test', 'https://…@b.test'],
    ['https://a.example.com/x?token=hunter2', 'https://a.example.com/x?…'],
    ['https://a.example.com/x#hunter2', 'https://a.example.com/x?…'],
    ['/var/run/secrets/token-sidecar', '/var/run/secrets/token-sidecar'],
    ['token-sidecar.namespace.svc.cluster.local', 'token-sidecar.namespace.svc.cluster.local'],
    ['[2001:db8:85a3::8a2e:370:7334]:15080', '[2001:db8:85a3::8a2e:370:7334]:15080'],
    [
      'api.example.com=127.0.0.2,pay.example.com:8443=127.0.0.3',
      'api.example.com=127.0.0.2,pay.example.com:8443=127.0.0.3',
    ],
    ['ip-10-0-1-2.eu-west-1.compute.internal:8443', 'ip-10-0-1-2.eu-west-1.compute.internal:8443'],
    ['https://graph.microsoft.com/.default openid', 'https://graph.microsoft.com/.default openid'],
    ['TOKEN_SIDECAR_AUTH_URL', 'TOKEN_SIDECAR_AUTH_URL'],
    ['existingAuthorization', 'existingAuthorization'],
    ['client_secret_basic2', 'client_secret_basic2'],
    // What was not put in is told as it stands.
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as it is written
    ['${TOKEN_SIDECAR_UPSTREAM}', '${TOKEN_SIDECAR_UPSTREAM}'],
    ['application/problem+json', 'application/problem+json'],
    ['https://sso.example.com/realms/a9VqXp3TzLw8RbNcYd2KfGhJ', 'https://sso.example.com/realms/…'],
    ['https://a9VqXp3TzLw8RbNcYd2KfGhJ/token', 'https://…/token'],
    ['/etc/keys/wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY', '/etc/keys/…'],
    ['read a9VqXp3TzLw8RbNcYd2KfGhJ write', 'read … write'],
  ])('%s is shown as %s', (value, expected) => {
    expect(redactedValue(value)).toBe(expected);
  });

  it.each([
    ['a generated password', 'a9VqXp3TzLw8RbNcYd2KfGhJ'],
    ['one with signs', 'Xk#9f!Qz$2m@7Lp&4Rt^8'],
    ['one with signs that names have', 'Xk$9f+Qz-2m.7Lp_4Rt+8'],
    ['one of letters alone', 'xQmWzLpRtKvBnHsDfGjC'],
    ['one of small letters alone', 'zxcvbnmsdfghjklqwrtp'],
    ['one with hyphens', 'x3Jm0-sQw9vL-pZr7tYb'],
    ['a key in groups', 'AB12-3CD4-EF56-7GH8-IJ90'],
    ['a key with slashes', 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'],
    ['a JWT', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl'],
    ['a JWT of few digits', 'eyJhbGciOiJub25lIn.eyJzdWIiOiJhIn.abcdefghij'],
    ['a token of GitHub', 'ghp_q7Zt2LmXv9RbKc4WpNd8'],
    ['Base64 of a word', Buffer.from('correct horse battery').toString('base64')],
    ['hexadecimal digits', 'deadbeefcafe0123456789ab'],
    ['the number of a card', '4111111111111111111111'],
    ['an id', '3f2504e0-4f89-41d3-9a0c-0305e82c3301'],
    ['words without end', 'x '.repeat(200)],
    ['more than is read', '/'.repeat(20_000)],
  ])('%s is described', (_, value) => {
    expect(quoted(value)).toBe(`a text of ${value.length} characters`);
  });

  it('that is generated is described, of whichever letters', () => {
    const alphabets = [
      'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
      'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
      'abcdefghijklmnopqrstuvwxyz0123456789',
      '0123456789abcdef',
    ];
    const generated = fc
      .constantFrom(...alphabets)
      .chain((letters) => fc.array(fc.constantFrom(...letters), { minLength: 32, maxLength: 64 }));
    const shownWhole = fc
      .sample(generated, { numRuns: 2000, seed: 1 })
      .map((letters) => letters.join(''))
      .filter((text) => redactedValue(text) === text && !text.startsWith('/'));
    expect(shownWhole).toEqual([]);
  });
});

describe('a line', () => {
  it.each([
    ['  - name: api', '  - name: api'],
    ['  clientSecret: hunter2', '  clientSecret: …'],
    ['clientSecret: "hun: ter, 2" # hunter3', 'clientSecret: … # …'],
    ['{ name: a, password: hunter2, upstream: https://x }', '{ name: a, password: …, upstream: https://x }'],
    ['{ name: a, hunter2 }', '{ name: a, … }'],
    ['{ "name": "a", "secret": "hunter2" }', '{ "name": "a", "secret": … }'],
    ['hosts: [a, b]', 'hosts: [a, b]'],
    ['hunter2', '…'],
    ['- hunter2', '- …'],
    ['CLIENT_SECRET=hunter2', '…'],
    ["'hunter2", '…'],
  ])('%s is shown as %s', (line, expected) => {
    expect(shown(line)).toBe(expected);
  });

  it('stands under the key above it', () => {
    expect(shown('- status.example.com', 'hosts')).toBe('- status.example.com');
    expect(shown('- hunter2', 'password')).toBe('- …');
  });

  it('never shows what stands behind a key that there is not, whatever is around it', () => {
    const secret = fc.stringMatching(/^[A-Za-z0-9!$%^&*()_+=.;<>/@~-]{6,30}$/).map((text) => `hunter${text}`);
    const before = fc.constantFrom('', '- ', '  ', '{ name: a, ', '{ "name": "a", ', '- { dir: /x, ', '\t');
    const after = fc.constantFrom('', ' }', ', upstream: https://x }', ' # was another');
    const quote = fc.constantFrom('', '"', "'");
    fc.assert(
      fc.property(before, secret, quote, after, (start, word, mark, end) => {
        const line = `${start}clientSecret: ${mark}${word}${mark}${end}`;
        expect(shown(line)).not.toContain('hunter');
      }),
    );
  });

  it('is left out where it is very long, however it is made', () => {
    for (const line of [`name: ${' '.repeat(1_000_000)}x`, `{ name: ${'a, '.repeat(500_000)}`]) {
      expect(shown(line)).toBe('…');
    }
    const before = process.cpuUsage();
    shown(`name: x${' '.repeat(9_900)}y`);
    // Its own work, however many others there are.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(5000);
  });

  it('knows where a part of it has got to', () => {
    const { text, place } = redactedLine('{ password: hunter2, name: API }', (key) => KNOWN.includes(key));
    expect(text).toBe('{ password: …, name: API }');
    expect(text.slice(place('{ password: hunter2, name: '.length))).toBe('API }');
    expect(text[place('{ password: hun'.length)]).toBe('…');
  });
});

it.each([
  ['a colon forgotten', 'credentials:\n  - name: a\n    clientSecret hunter2secret\n'],
  ['a key twice', 'listen: 127.0.0.1:1\nlisten: hunter2secret\n'],
  ['text in place of a mapping', 'credentials:\n  - name: a\n    parameters: hunter2secret\n'],
  ['text in place of a list of mappings', 'routes: hunter2secret\n'],
])('what is wrong is described, not quoted: %s', async (_, text) => {
  const problems: Problem[] = [];
  await parseConfig(text, 'token-sidecar.yaml', problems);

  expect(problems).not.toEqual([]);
  expect(reportProblems(problems, { colour: false })).not.toContain('hunter2');
  expect(JSON.stringify(problems)).not.toContain('hunter2');
});
