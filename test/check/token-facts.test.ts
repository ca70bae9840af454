import { describe, expect, it } from 'vitest';
import { about } from '../../src/check/check-context.ts';
import { describeClock, describeToken, skewOf } from '../../src/check/token-facts.ts';
import type { CredentialSettings } from '../../src/config/config.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { lines } from './examined.ts';

const OF = about('credential shop');
const TOKEN_URL = 'https://sso.example.com/token';

function jwt(claims: Readonly<Record<string, unknown>>): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part(claims)}.SIGNATURE`;
}

interface Case {
  readonly settings?: Partial<CredentialSettings>;
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly token?: string;
  readonly lifetimeMs?: number;
  readonly isLifetimeAssumed?: boolean;
  readonly clientId?: string;
}

function facts({
  settings = {},
  fields = {},
  token = 'OPAQUE',
  lifetimeMs = 300_000,
  isLifetimeAssumed = false,
  clientId,
}: Case): string[] {
  const answer = {
    status: 200,
    contentType: 'application/json',
    retryAfter: undefined,
    body: JSON.stringify({ access_token: token, ...fields }),
    requestedAtMs: 0,
    receivedAtMs: 0,
  };
  const config = credentialConfig({ tokenUrl: TOKEN_URL, ...settings });
  const text = lines(describeToken(config, { token, lifetimeMs, isLifetimeAssumed, answer, clientId }, OF));
  expect(text.join()).not.toMatch(/OPAQUE|SIGNATURE|eyJ/);
  return text.map((line) => line.replace('credential shop: ', ''));
}

describe('lifetime', () => {
  it('says how long it is and when the token is renewed', () => {
    expect(facts({})).toEqual(['ok token lifetime: 300 s, renewed after 225 s at the latest']);
  });

  it('says so if it is assumed', () => {
    expect(facts({ isLifetimeAssumed: true })).toEqual([
      'ok token lifetime: 300 s assumed (renewal.defaultLifetime), renewed after 225 s at the latest',
    ]);
  });

  it('warns of a short one, and of a token that disagrees with its answer', () => {
    expect(facts({ lifetimeMs: 20_000 })[0]).toMatch(/^warning token lifetime: 20 s/);
    const token = jwt({ iat: 1000, exp: 1300 });
    expect(facts({ token, fields: { expires_in: 3600 } })[0]).toMatch(
      /^warning .*the answer says 3600 s, the token itself 300 s → make the two agree/,
    );
  });
});

describe('scopes', () => {
  const of = (found: Case) => facts(found).filter((line) => line.includes(' scope: '));

  it('are silent where there are none', () => expect(of({})).toEqual([]));

  it.each<[string, Case, string]>([
    [
      'as asked',
      { settings: { scope: 'read' }, fields: { scope: 'read' } },
      'ok scope: asked for read; granted read',
    ],
    [
      'by an answer that names none, which means as asked (RFC 6749 §5.1)',
      { settings: { scope: 'read' } },
      'ok scope: asked for read; the answer names none, which means the same',
    ],
    ['unasked', { fields: { scope: 'a b' } }, 'ok scope: none asked for; granted a b'],
    [
      'by the token',
      { settings: { scope: 'read' }, token: jwt({ scp: ['read'] }) },
      'ok scope: asked for read; granted read',
    ],
    [
      'as Entra ID does',
      { settings: { scope: 'api://a/.default' }, fields: { scope: 'roles' } },
      'ok scope: asked for api://a/.default; granted roles',
    ],
  ])('are granted %s', (_, found, expected) => expect(of(found)).toEqual([expected]));

  it('that were asked for and left out are a warning', () => {
    expect(of({ settings: { scope: 'read write' }, fields: { scope: 'read' } })).toEqual([
      'warning scope: asked for read write; granted read: without write → allow the client the scope at the provider, or ask for less',
    ]);
  });

  it('show no id of the client', () => {
    const settings = { scope: 'api://shop-7f3a/.default' };
    expect(of({ settings, fields: { scope: 'shop-7f3a read' }, clientId: 'shop-7f3a' })).toEqual([
      'ok scope: asked for api://this client/.default; granted this client read',
    ]);
  });

  it('are shown as far as they are plain', () => {
    const hostile = `ok\u001b[2J ${'x'.repeat(500)} ${'a1B2c3D4'.repeat(5)}`;
    expect(of({ fields: { scope: hostile } })[0]).toBe('ok scope: none asked for; granted … … …');
  });
});

describe('audience', () => {
  const of = (found: Case) => facts(found).filter((line) => line.includes(' audience: '));

  it.each<[string, Case, string]>([
    [
      'named by the token',
      { token: jwt({ aud: ['a', 'b'] }) },
      'ok audience: none asked for; the token is for a b',
    ],
    [
      'as asked',
      { settings: { audience: 'a' }, token: jwt({ aud: 'a' }) },
      'ok audience: the token is for a, as asked for',
    ],
    [
      'unknown where the token is no JWT',
      { settings: { audience: 'a' } },
      'ok audience: asked for a; the token is no JWT, so the upstream alone can tell',
    ],
  ])('is %s', (_, found, expected) => expect(of(found)).toEqual([expected]));

  it.each<[string, Case, string]>([
    [
      'among others',
      { token: jwt({ aud: ['shop-7f3a', 'account'] }) },
      'ok audience: none asked for; the token is for this client account',
    ],
    [
      'in the name of an API',
      { token: jwt({ aud: 'api://shop-7f3a/orders' }), settings: { audience: 'api://shop-7f3a/orders' } },
      'ok audience: the token is for api://this client/orders, as asked for',
    ],
    [
      'as asked for',
      { token: jwt({ aud: 'account' }), settings: { audience: 'shop-7f3a' } },
      'warning audience: asked for this client; the token is for account → let the provider put the audience into tokens of this client (Keycloak: an audience mapper)',
    ],
  ])('shows no id of the client: %s', (_, found, expected) =>
    expect(of({ ...found, clientId: 'shop-7f3a' })).toEqual([expected]),
  );

  it('that is another than was asked for is a warning', () => {
    expect(of({ settings: { audience: 'a' }, token: jwt({ aud: 'account' }) })[0]).toMatch(
      /^warning audience: asked for a; the token is for account → /,
    );
  });
});

describe('clock', () => {
  const answered = (date: string | undefined, requestedAtMs: number, receivedAtMs: number) =>
    skewOf({
      status: 200,
      contentType: '',
      retryAfter: undefined,
      body: '',
      date,
      requestedAtMs,
      receivedAtMs,
    });
  const date = 'Sun, 22 Nov 2026 12:00:00 GMT';
  const at = Date.parse(date);

  it.each([
    [at + 300, at + 700, 'ok credential shop: clock: within 1 s of the provider'],
    [at + 60_000, at + 61_000, 'warning credential shop: clock: 60 s ahead of the provider'],
    [at - 60_000, at - 59_000, 'warning credential shop: clock: 60 s behind the provider'],
  ])('is compared with the Date of the answer', (requestedAtMs, receivedAtMs, expected) => {
    const [line] = lines([describeClock(answered(date, requestedAtMs, receivedAtMs), OF)]);
    expect(line).toContain(expected);
  });

  it('is not judged without a Date', () => {
    expect(answered(undefined, 0, 0)).toBeUndefined();
    expect(describeClock(undefined, OF)).toMatchObject({ verdict: 'ok' });
  });
});
