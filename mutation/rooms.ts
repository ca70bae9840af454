/** The rooms whose tests are held to a mutation score, and the suites that run for a mutant of each. */
const SUITES = {
  token: ['test/token', 'test/platform/mounted'],
  proxy: ['test/proxy', 'test/wire'],
  issuer: ['test/issuer', 'test/integration/issuer'],
  injector: ['test/injector', 'test/integration/injector'],
} as const satisfies Record<string, readonly string[]>;

export type Room = keyof typeof SUITES;

export const ROOMS = Object.keys(SUITES) as readonly Room[];

/** The room of a source file of the project (a path from its root), if it is one of those. */
export function roomOf(file: string): Room | undefined {
  const [src, room] = file.split('/');
  return src === 'src' && file.endsWith('.ts') ? ROOMS.find((name) => name === room) : undefined;
}

/** Directories of the test files that run for mutants of these files. */
export function suitesFor(files: readonly string[]): readonly string[] {
  const rooms = new Set(files.map(roomOf));
  return ROOMS.filter((room) => rooms.has(room)).flatMap((room) => SUITES[room]);
}
