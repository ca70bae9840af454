/** The provider's request rate over time as an SVG, in multiples of the steady load. */

import type { FleetScenario } from './fleet.ts';
import type { FleetReport } from './report.ts';

export interface Panel {
  readonly title: string;
  readonly scenario: FleetScenario;
  readonly report: FleetReport;
}

const WIDTH = 960;
const PANEL_HEIGHT = 260;
const PLOT = { left: 56, right: 16, top: 44, bottom: 36 };
/** What is higher is cut off and its value written beside it. */
const HIGHEST = 10;

export function drawChart(panels: readonly Panel[]): string {
  const height = PANEL_HEIGHT * panels.length;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="#24292f" role="img">`,
    '<title>Requests to the identity provider over time</title>',
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    ...panels.map((panel, index) => drawPanel(panel, index * PANEL_HEIGHT)),
    '</svg>',
  ].join('\n')}\n`;
}

function drawPanel({ title, scenario, report }: Panel, offset: number): string {
  const bottom = offset + PANEL_HEIGHT - PLOT.bottom;
  const plotHeight = PANEL_HEIGHT - PLOT.top - PLOT.bottom;
  const right = WIDTH - PLOT.right;
  const x = (ms: number) => round(PLOT.left + ((right - PLOT.left) * ms) / scenario.endMs);
  const y = (rate: number) => round(bottom - (plotHeight * Math.min(rate, HIGHEST)) / HIGHEST);
  const { outage } = scenario.provider;

  const area = report.rates.map((rate, bucket) => {
    const fromMs = bucket * report.bucketMs;
    return `L${x(fromMs)} ${y(rate)}H${x(fromMs + report.bucketMs)}`;
  });
  const cutOff = report.rates.flatMap((rate, bucket) =>
    rate > HIGHEST
      ? [
          `<text x="${x((bucket + 1) * report.bucketMs) + 4}" y="${y(HIGHEST) + 12}">${rate.toFixed(0)}×</text>`,
        ]
      : [],
  );
  const minutes: string[] = [];
  for (let atMs = 0; atMs <= scenario.endMs; atMs += 600_000) {
    minutes.push(`<text x="${x(atMs)}" y="${bottom + 18}" text-anchor="middle">${atMs / 60_000} min</text>`);
  }
  return [
    `<text x="${PLOT.left}" y="${offset + 20}" font-weight="600">${title}</text>`,
    `<rect x="${x(outage.fromMs)}" y="${y(HIGHEST)}" width="${round(x(outage.toMs) - x(outage.fromMs))}" height="${plotHeight}" fill="#ffebe9"/>`,
    `<text x="${x(outage.fromMs) + 6}" y="${offset + 38}" fill="#a40e26">provider away (requests refused)</text>`,
    `<path d="M${PLOT.left} ${bottom}${area.join('')}V${bottom}Z" fill="#54aeff" stroke="#0969da" stroke-width="0.5"/>`,
    ...[1, 3].map(
      (rate) =>
        `<line x1="${PLOT.left}" x2="${right}" y1="${y(rate)}" y2="${y(rate)}" stroke="#57606a" stroke-dasharray="4 4"/>`,
    ),
    ...[0, 1, 3, HIGHEST].map(
      (rate) => `<text x="${PLOT.left - 8}" y="${y(rate) + 4}" text-anchor="end">${rate}×</text>`,
    ),
    `<line x1="${PLOT.left}" x2="${right}" y1="${bottom}" y2="${bottom}" stroke="#24292f"/>`,
    ...cutOff,
    ...minutes,
  ].join('\n');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
