/**
 * Places a token in `Authorization`, other fields, a placeholder or the query. It replaces what is there and
 * Authorization, so that the upstream sees one identity. A kind of place is a member of `Injection` in
 * `src/config/config.ts`, read by `file-schema.ts` there, checked in `resolve-forwarding.ts` and shown by
 * `src/sidecar/status/configuration.ts`. The app's own Authorization is dropped by `header-rules.ts`, in trailers by
 * `../http/fields.ts`; `../transaction/admission.ts` may refuse it and `request-token.ts` there exchanges it. HPACK never indexes
 * the fields that `../http2/hpack/encoder.ts` lists. `src/check/upstream-request.ts` places tokens for its one request.
 */

import type { Injection } from '../../config/config.ts';
import type { Fields } from '../http/fields.ts';
import { MadeOf } from '../http/lasting-fields.ts';
import type { FieldSection, IncomingRequest, OutgoingRequest } from './contract.ts';

/** RFC 6750 §2.1. */
const BEARER = 'Bearer ';

/** HTTP/2's name for the target. */
const PATH = ':path';

type InjectionInto<Place extends Injection['into']> = Extract<Injection, { readonly into: Place }>;

type PlacedSection = Pick<FieldSection, 'connectionOptions' | 'fields'>;

/**
 * The app's own identity stays if the route wants it.
 * @param placement if undefined, `placeAuthorization` adds the token. Otherwise all fields then pass.
 */
export function withToken(request: OutgoingRequest, placement: TokenPlacement | undefined): OutgoingRequest {
  if (placement === undefined) return request;
  const { authorization, from, target } = request;
  if (request.keepClientAuthorization) return { ...request, from: placement.keepOwn(from) };
  return {
    ...request,
    from: placement.place(from, authorization),
    target: placement.target(target, authorization),
    authorization: undefined,
    keepClientAuthorization: true,
  };
}

/** @param passed fields. @param hasOwn one is the app's own Authorization. */
export function placeAuthorization(
  passed: string[],
  authorization: OutgoingRequest['authorization'],
  hasOwn: boolean,
): void {
  if (authorization !== undefined && !hasOwn) passed.push('authorization', authorization);
}

export class TokenPlacement {
  readonly #headers: readonly InjectionInto<'header'>[];
  readonly #placeholders: readonly (InjectionInto<'placeholder'> & { readonly alike: string })[];
  /** Normalised by `parameterName`. */
  readonly #parameters: readonly { readonly parameter: string; readonly alike: string }[];
  /** Normalised by `alike`. */
  readonly #owned: ReadonlySet<string>;
  readonly #neverIndexed: readonly string[];
  readonly #placed = new MadeOf<{
    readonly authorization: string | undefined;
    readonly section: PlacedSection;
  }>();

  constructor(injections: readonly Injection[]) {
    // The compiler asks for a new kind of place.
    const places: { readonly [Into in Injection['into']]: InjectionInto<Into>[] } = {
      header: [],
      placeholder: [],
      query: [],
    };
    for (const one of injections) (places[one.into] as Injection[]).push(one);
    this.#headers = places.header;
    this.#placeholders = places.placeholder.map((one) => ({ ...one, alike: alike(one.header) }));
    this.#parameters = places.query.map(({ parameter }) => ({ parameter, alike: parameterName(parameter) }));
    const headers = [...this.#headers, ...this.#placeholders].map(({ header }) => header);
    this.#owned = new Set(['authorization', ...headers.map(alike)]);
    this.#neverIndexed = [
      ...headers.map((header) => header.toLowerCase()),
      ...(this.#parameters.length > 0 ? [PATH] : []),
    ];
  }

  /** No token may stand beside the app's own identity. */
  areOwnCredentials({ fields, target }: Pick<IncomingRequest, 'fields' | 'target'>): boolean {
    for (let at = 0; at < fields.length; at += 2) {
      const name = fields[at] as string;
      if (this.owns(name) && this.swapped(name, fields[at + 1] as string, '') === undefined) return true;
    }
    return this.#parameters.length > 0 && withoutParameters(target, this.#parameters) !== target;
  }

  /** False without a placeholder that it needs. */
  takesToken({ fields }: Pick<IncomingRequest, 'fields'>): boolean {
    if (this.#headers.length > 0 || this.#parameters.length > 0) return true;
    for (let at = 0; at < fields.length; at += 2) {
      if (this.swapped(fields[at] as string, fields[at + 1] as string, '') !== undefined) return true;
    }
    return false;
  }

  /** Authorization is owned, too. */
  owns(name: string): boolean {
    return this.#owned.has(alike(name));
  }

  /** Undefined if there is no placeholder. */
  swapped(name: string, value: string, token: string): string | undefined {
    if (this.#placeholders.length === 0) return undefined;
    const key = alike(name);
    const found = this.#placeholders.find(({ alike: own, placeholder }) => {
      return own === key && endsInPlaceholder(value, placeholder);
    });
    return found && value.slice(0, value.length - found.placeholder.length) + token;
  }

  /** @param authorization of a bearer source. */
  place(request: IncomingRequest, authorization: string | undefined): IncomingRequest {
    const known = this.#placed.get(request.fields);
    let section = known?.section;
    if (section === undefined || known?.authorization !== authorization) {
      section = this.#section(request, authorization?.slice(BEARER.length));
      this.#placed.keep(request.fields, { authorization, section }, section.fields);
    }
    return { ...request, ...section, neverIndexed: this.#marksOf(request) };
  }

  /** No table may hold the app's own identity (RFC 7541 §7.1.3). */
  keepOwn(request: IncomingRequest): IncomingRequest {
    const marked = this.#marksOf(request);
    const names = request.fields.filter((name, at) => at % 2 === 0 && this.owns(name));
    const spelt = names.map((name) => name.toLowerCase()).filter((name) => !marked.includes(name));
    return { ...request, neverIndexed: spelt.length === 0 ? marked : [...marked, ...spelt] };
  }

  #marksOf({ neverIndexed: marked = [] }: IncomingRequest): readonly string[] {
    return marked.length === 0 ? this.#neverIndexed : [...marked, ...this.#neverIndexed];
  }

  target(target: string, authorization: string | undefined): string {
    // OPTIONS of the whole server has no query.
    if (this.#parameters.length === 0 || target === '*') return target;
    const bare = withoutParameters(target, this.#parameters);
    if (authorization === undefined) return bare;
    const token = encodeURIComponent(authorization.slice(BEARER.length));
    const added = this.#parameters.map(({ parameter }) => `${parameter}=${token}`).join('&');
    return `${bare}${joint(bare)}${added}`;
  }

  /** Drops trailers that pass for the token's fields. */
  permitted(trailers: Fields): Fields {
    return trailers.filter((_, at) => !this.owns(trailers[at - (at % 2)] as string));
  }

  #section({ fields, connectionOptions }: FieldSection, token: string | undefined): PlacedSection {
    const placed: string[] = [];
    const filled = new Set<string>();
    for (let at = 0; at < fields.length; at += 2) {
      const name = fields[at] as string;
      const value = fields[at + 1] as string;
      if (!this.owns(name)) {
        placed.push(name, value);
        continue;
      }
      const swapped = token === undefined ? undefined : this.swapped(name, value, token);
      // Readers disagree on which of two fields counts.
      if (swapped === undefined || filled.has(alike(name))) continue;
      filled.add(alike(name));
      placed.push(name, swapped);
    }
    if (token !== undefined) {
      for (const { header, scheme } of this.#headers) {
        placed.push(header, scheme === undefined ? token : `${scheme} ${token}`);
      }
    }
    return {
      fields: placed,
      // An app could strip the token by Connection.
      connectionOptions: connectionOptions.filter((option) => !this.owns(option)),
    };
  }
}

/** Servers that make fields variables (RFC 3875 §4.1.18) take an underscore for a dash. */
function alike(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

/** The placeholder alone, or behind a scheme. */
function endsInPlaceholder(value: string, placeholder: string): boolean {
  if (!value.endsWith(placeholder)) return false;
  return /^(?:[A-Za-z0-9!#$%&'*+.^_`|~-]+ +)?$/.test(value.slice(0, -placeholder.length));
}

/** Drops parameters in any spelling that a reader might accept. */
function withoutParameters(target: string, parameters: readonly { readonly alike: string }[]): string {
  const mark = target.indexOf('?');
  if (mark === -1) return target;
  // Some readers end a parameter there, too.
  const pieces = target.slice(mark + 1).split(/(?<=[&;])/);
  const kept = pieces.filter((piece) => {
    const name = parameterName(piece.replace(/[&;]$/, '').replace(/=.*$/s, ''));
    return !parameters.some((one) => one.alike === name);
  });
  if (kept.length === pieces.length) return target;
  const query = kept.join('').replace(/[&;]$/, '');
  return query === '' ? target.slice(0, mark) : `${target.slice(0, mark)}?${query}`;
}

/**
 * As the most lenient reader has it: decoded, in lower case, without brackets, dots and spaces as
 * underscores.
 */
function parameterName(text: string): string {
  const octets = text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return octets
    .toLowerCase()
    .replace(/^[+ ]+/, '')
    .replace(/(?<=.)\[.*$|\0.*$/s, '')
    .replace(/[.+ -]/g, '_');
}

function joint(target: string): '?' | '&' | '' {
  const mark = target.indexOf('?');
  if (mark === -1) return '?';
  return mark === target.length - 1 || target.endsWith('&') ? '' : '&';
}
