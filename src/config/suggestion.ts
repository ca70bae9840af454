/** Insertions, removals, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      const isSwapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current[column] = Math.min(
        (last[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (last[column - 1] as number) + (isSame ? 0 : 1),
        isSwapped && !isSame ? (beforeLast[column - 2] as number) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, current];
  }
  return last[b.length] as number;
}

/** No name is longer. */
const MAX_NAME_LENGTH = 100;

/** From earlier builds. */
const FORMER_NAMES: Readonly<Record<string, string>> = {
  leaveDelay: 'drainDelay',
  'captured-ports': 'ports',
  TOKEN_SIDECAR_CAPTURED_PORTS: 'TOKEN_SIDECAR_PORTS',
};

/** Renamed, or close: one in three characters may differ. */
export function nearestName(wrong: string, known: readonly string[]): string | undefined {
  const renamed = Object.hasOwn(FORMER_NAMES, wrong) ? FORMER_NAMES[wrong] : undefined;
  if (renamed !== undefined && known.includes(renamed)) return renamed;
  if (wrong.length > MAX_NAME_LENGTH) return undefined;
  const [nearest] = known
    .map((name) => ({ name, distance: editDistance(wrong.toLowerCase(), name.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  if (nearest === undefined || nearest.distance > Math.max(1, Math.floor(nearest.name.length / 3))) {
    return undefined;
  }
  return nearest.name;
}

/** `; did you mean "x"?`, or nothing. */
export function didYouMean(wrong: string, known: readonly string[], prefix = ''): string {
  const nearest = nearestName(wrong.replace(/^-+/, ''), known);
  return nearest === undefined ? '' : `; did you mean "${prefix}${nearest}"?`;
}
