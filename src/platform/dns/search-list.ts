/** The names that a short name may stand for, by resolv.conf(5). */
export interface SearchList {
  /** Domains to append to a name, in order. */
  readonly domains: readonly string[];
  /** A name with at least this many dots is tried unchanged first. */
  readonly ndots: number;
}

/** As many as resolvers heed: the rest of a longer list is ignored. */
const MAX_DOMAINS = 32;

/** The C library's limit for larger values. */
const MAX_DOTS = 15;

/** Reads resolv.conf. If there are several `search` or `domain` lines, the last one counts. */
export function readSearchList(text: string): SearchList {
  let domains: readonly string[] = [];
  let ndots = 1;
  for (const line of text.split('\n')) {
    const [keyword, ...words] = line
      .replace(/[#;].*$/, '')
      .split(/\s+/)
      .filter((word) => word !== '');
    if (keyword === 'search') domains = words.slice(0, MAX_DOMAINS);
    else if (keyword === 'domain') domains = words.slice(0, 1);
    else if (keyword === 'options') ndots = dotsIn(words) ?? ndots;
  }
  return {
    domains: domains.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== ''),
    ndots,
  };
}

function dotsIn(options: readonly string[]): number | undefined {
  const [, digits] =
    /^ndots:(\d{1,3})$/.exec(options.findLast((option) => option.startsWith('ndots:')) ?? '') ?? [];
  return digits === undefined ? undefined : Math.min(Number(digits), MAX_DOTS);
}

/** The names to query, in order: the first that has an address is the one meant. */
export function candidatesFor(name: string, { domains, ndots }: SearchList): readonly string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const searched = domains.map((domain) => `${name}.${domain}`);
  const dots = name.split('.').length - 1;
  return dots >= ndots ? [name, ...searched] : [...searched, name];
}
