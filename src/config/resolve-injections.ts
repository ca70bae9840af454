/** Where a route puts its token. */

import type { Problem } from '../platform/problems.ts';
import type { Injection } from './config.ts';
import type { Keyed } from './entries.ts';
import type { InjectionEntry } from './file-schema.ts';

const AUTHORIZATION = 'Authorization';
const BEARER = 'Bearer';

/** Fields that frame or route a message, apply to one hop, belong to the sidecar, or hold several values at once. */
const NOT_FOR_TOKENS =
  /^(?:connection|cookie|expect|forwarded|host|keep-alive|max-forwards|te|trailer|transfer-encoding|upgrade|via|(?:content|if|proxy|sec|token-sidecar|access-control)-.*)$/;

/** Undefined for `Authorization: Bearer`, explicit or not. @param key names the setting in messages. */
export function resolveInjections(
  key: string,
  entry: InjectionEntry | readonly InjectionEntry[] | undefined,
  problems: Problem[],
): readonly Injection[] | undefined {
  if (entry === undefined) return undefined;
  const isList = Array.isArray(entry);
  const entries: readonly InjectionEntry[] = isList ? entry : [entry as InjectionEntry];
  const keyed = entries.flatMap((one, index) => {
    const oneKey = isList ? `${key}[${index}]` : key;
    const resolved = resolveInjection(oneKey, one, problems);
    return resolved === undefined ? [] : [{ key: oneKey, entry: resolved }];
  });
  checkPlaces(keyed, problems);
  const injections = keyed.map((one) => one.entry);
  return injections.every(isUsual) ? undefined : injections;
}

function isUsual(injection: Injection): boolean {
  if (injection.into !== 'header') return false;
  return injection.header.toLowerCase() === 'authorization' && injection.scheme === BEARER;
}

function resolveInjection(key: string, entry: InjectionEntry, problems: Problem[]): Injection | undefined {
  const { header, scheme, placeholder, query } = entry;
  if (query !== undefined) {
    refuse(key, entry, ['header', 'scheme', 'placeholder'], 'nothing beside query', problems);
    return { into: 'query', parameter: query };
  }
  if (header === undefined && scheme === undefined && placeholder === undefined) {
    // If it was there and wrong, it has been reported and removed.
    if (problems.some((problem) => problem.key.startsWith(`${key}.`))) return undefined;
    problems.push({
      key,
      expected: 'header, placeholder or query',
      code: 'missing_value',
      remedy: 'Say where the token goes, or remove inject: without it that is Authorization: Bearer.',
    });
    return undefined;
  }
  if (header !== undefined && NOT_FOR_TOKENS.test(header.toLowerCase())) {
    problems.push({ key: `${key}.header`, value: header, expected: 'a header that may hold a token alone' });
  }
  if (placeholder !== undefined) {
    refuse(key, entry, ['scheme'], 'nothing beside placeholder: the app writes the scheme', problems);
    return { into: 'placeholder', header: header ?? AUTHORIZATION, placeholder };
  }
  const name = header ?? AUTHORIZATION;
  const usual = name.toLowerCase() === 'authorization' ? BEARER : '';
  const said = scheme ?? usual;
  return { into: 'header', header: name, ...(said === '' ? {} : { scheme: said }) };
}

function refuse(
  key: string,
  entry: InjectionEntry,
  names: readonly (keyof InjectionEntry)[],
  expected: string,
  problems: Problem[],
): void {
  for (const name of names) {
    const value = entry[name];
    if (value !== undefined)
      problems.push({ key: `${key}.${name}`, value, expected, code: 'conflicting_settings' });
  }
}

/** Two tokens in one place would give two answers to who is asking. */
function checkPlaces(injections: readonly Keyed<Injection>[], problems: Problem[]): void {
  injections.forEach(({ key, entry }, index) => {
    const earlier = injections.slice(0, index).find((one) => placeOf(one.entry) === placeOf(entry));
    if (earlier === undefined) return;
    const [name, value] = entry.into === 'query' ? ['query', entry.parameter] : ['header', entry.header];
    const expected = `another place than that of ${earlier.key}`;
    problems.push({ key: `${key}.${name}`, value, expected, code: 'conflicting_settings' });
  });
}

function placeOf(injection: Injection): string {
  if (injection.into === 'query') return `query ${injection.parameter.toLowerCase()}`;
  return `header ${injection.header.toLowerCase().replaceAll('_', '-')}`;
}

/** A placeholder within another would also be found where only the other is meant. */
export function checkPlaceholders(
  users: readonly Keyed<{ readonly inject?: readonly Injection[] }>[],
  problems: Problem[],
): void {
  const all = users.flatMap(({ key, entry: { inject = [] } }) =>
    inject.flatMap((one) => (one.into === 'placeholder' ? [{ key, text: one.placeholder }] : [])),
  );
  for (const { key, text } of all) {
    const longer = all.find((other) => other.text !== text && other.text.includes(text));
    if (longer === undefined) continue;
    problems.push({
      key: `${key}.inject.placeholder`,
      value: text,
      expected: `a text that is no part of another placeholder (${longer.text})`,
    });
  }
}
