/** No detail holds the token. */

import type { CredentialConfig } from '../config/config.ts';
import { parseObject } from '../platform/json-object.ts';
import { redactedValue } from '../platform/log/redacted-text.ts';
import { type EndpointResponse, parseHttpDate } from '../token/provider/token-response.ts';
import { renewalDelayMs } from '../token/schedule.ts';
import type { About, Finding } from './check-context.ts';

interface Granted {
  readonly token: string;
  readonly lifetimeMs: number;
  readonly isLifetimeAssumed: boolean;
  /** Undefined for a mounted token. */
  readonly answer: EndpointResponse | undefined;
  /** Never shown. */
  readonly clientId: string | undefined;
}

/** Shorter lives cause useless load. */
const SHORT_LIFE_MS = 60_000;
/** Answer and token may differ by the duration of a grant. */
const SAME_LIFE_SECONDS = 5;
/** With clocks further apart, assertions are refused somewhere. */
const SKEW_MS = 5000;

export function describeToken(config: CredentialConfig, granted: Granted, of: About): Finding[] {
  const fields = granted.answer === undefined ? undefined : parseObject(granted.answer.body);
  const claims = claimsOf(granted.token);
  const shown = shownBeside(granted.clientId);
  return [
    lifetime(config, granted, fields, claims, of),
    ...scopes(config, fields, claims, shown, of),
    ...audience(config, claims, shown, of),
  ];
}

type Fields = Readonly<Record<string, unknown>> | undefined;

/** Unverified (RFC 7519 §4). */
function claimsOf(token: string): Fields {
  const [, payload, signature] = token.split('.');
  if (payload === undefined || signature === undefined) return undefined;
  return parseObject(Buffer.from(payload, 'base64url').toString('utf8'));
}

function lifetime(
  { renewal }: CredentialConfig,
  { lifetimeMs, isLifetimeAssumed, answer }: Granted,
  fields: Fields,
  claims: Fields,
  of: About,
): Finding {
  if (!Number.isFinite(lifetimeMs)) return of.ok('token_lifetime', 'until the mounted file is replaced');
  const seconds = Math.round(lifetimeMs / 1000);
  const latest = Math.round(renewalDelayMs(lifetimeMs, renewal, 0) / 1000);
  const life = isLifetimeAssumed ? `${seconds} s assumed (renewal.defaultLifetime)` : `${seconds} s`;
  const detail = `${life}${answer === undefined ? '' : `, renewed after ${latest} s at the latest`}`;
  const stated = Number(fields?.['expires_in']);
  const { exp, iat } = claims ?? {};
  const own = typeof exp === 'number' && typeof iat === 'number' ? exp - iat : undefined;
  if (own !== undefined && stated > 0 && Math.abs(own - stated) > SAME_LIFE_SECONDS) {
    return of.warning(
      'token_lifetime',
      `${detail}: the answer says ${stated} s, the token itself ${Math.round(own)} s`,
      'make the two agree at the provider; until then the shorter one counts',
    );
  }
  return lifetimeMs < SHORT_LIFE_MS
    ? of.warning(
        'token_lifetime',
        detail,
        'let the provider issue tokens of five minutes or more, unless it gave one near its end',
      )
    : of.ok('token_lifetime', detail);
}

const MAX_SHOWN = 12;

/** Hides possible secrets and the client's id. */
interface Shown {
  name(name: string): string;
  list(names: readonly string[]): string;
}

function shownBeside(clientId: string | undefined): Shown {
  // An API is often named after its client, as in api://CLIENT_ID/.default.
  const unnamed = (text: string) => (text === clientId ? 'this client' : text);
  const name = (given: string): string => {
    if (!/^[\x21-\x7e]{1,120}$/.test(given)) return '…';
    const text = given === clientId ? [given] : given.split(/([/:])/);
    return redactedValue(text.map(unnamed).join('')) ?? '…';
  };
  const list = (names: readonly string[]): string => {
    const shown = names.slice(0, MAX_SHOWN).map(name);
    return shown.join(' ') + (names.length > MAX_SHOWN ? ` and ${names.length - MAX_SHOWN} more` : '');
  };
  return { name, list };
}

function scopes(
  { scope }: CredentialConfig,
  fields: Fields,
  claims: Fields,
  shown: Shown,
  of: About,
): Finding[] {
  const asked = scope?.split(/\s+/).filter((one) => one !== '') ?? [];
  const granted = wordsOf(fields?.['scope']) ?? wordsOf(claims?.['scope']) ?? wordsOf(claims?.['scp']);
  if (asked.length === 0 && granted === undefined) return [];
  const ask = asked.length === 0 ? 'none asked for' : `asked for ${shown.list(asked)}`;
  if (granted === undefined) return [of.ok('scope', `${ask}; the answer names none, which means the same`)];
  const got = granted.length === 0 ? 'none granted' : `granted ${shown.list(granted)}`;
  // `api://orders/.default` stands for everything that the client may have.
  const missing = asked.filter((one) => !granted.includes(one) && !one.endsWith('/.default'));
  if (missing.length === 0) return [of.ok('scope', `${ask}; ${got}`)];
  return [
    of.warning(
      'scope',
      `${ask}; ${got}: without ${shown.list(missing)}`,
      'allow the client the scope at the provider, or ask for less',
    ),
  ];
}

function wordsOf(value: unknown): string[] | undefined {
  if (typeof value === 'string') return value.split(' ').filter((one) => one !== '');
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : undefined;
}

function audience({ audience: asked }: CredentialConfig, claims: Fields, shown: Shown, of: About): Finding[] {
  if (claims === undefined) {
    return asked === undefined
      ? []
      : [
          of.ok(
            'audience',
            `asked for ${shown.name(asked)}; the token is no JWT, so the upstream alone can tell`,
          ),
        ];
  }
  const { aud } = claims;
  const given = typeof aud === 'string' ? [aud] : (wordsOf(aud) ?? []);
  const has = given.length === 0 ? 'the token names none' : `the token is for ${shown.list(given)}`;
  if (asked === undefined) return [of.ok('audience', `none asked for; ${has}`)];
  if (given.includes(asked)) return [of.ok('audience', `${has}, as asked for`)];
  return [
    of.warning(
      'audience',
      `asked for ${shown.name(asked)}; ${has}`,
      'let the provider put the audience into tokens of this client (Keycloak: an audience mapper)',
    ),
  ];
}

/** How far this machine's clock is ahead of the provider's; undefined without a Date. */
export function skewOf({ date, requestedAtMs, receivedAtMs }: EndpointResponse): number | undefined {
  const saidMs = date === undefined ? undefined : parseHttpDate(date);
  // The middle of the Date's second, and of the exchange.
  return saidMs === undefined ? undefined : (requestedAtMs + receivedAtMs) / 2 - (saidMs + 500);
}

export function describeClock(skewMs: number | undefined, of: About): Finding {
  if (skewMs === undefined) return of.ok('clock', 'the provider tells no time');
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  if (Math.abs(skewMs) <= SKEW_MS)
    return of.ok('clock', `within ${Math.max(1, seconds)} s of the provider's`);
  const way = skewMs > 0 ? 'ahead of' : 'behind';
  return of.warning(
    'clock',
    `${seconds} s ${way} the provider's`,
    'set the clock of the node (chrony, systemd-timesyncd), or that of the provider',
  );
}
