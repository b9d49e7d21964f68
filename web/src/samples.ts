/** The samples that the service has, and the addresses of the problems. */

export const KINDS = ["lap", "auction", "uot", "qap", "barycenter", "gromov"];
export const SLUGS: Record<string, string> = {
  lap: "assign",
  auction: "match",
  uot: "transport",
  qap: "layout",
  barycenter: "average",
  gromov: "align",
};

export interface Sample {
  name: string;
  kind: string;
  title: string;
  what: string;
}

export const SAMPLES: Sample[] = [
  { name: "office", kind: "qap", title: "Outpatient clinic", what: "24 departments, 24 rooms" },
  { name: "taxis", kind: "lap", title: "Taxi dispatch", what: "48 riders, 56 taxis" },
  { name: "tracks", kind: "auction", title: "Track matching", what: "36 tracks, 48 detections; some pairs only" },
  { name: "cells", kind: "uot", title: "Cell alignment", what: "160 cells of day 2, 180 of day 4" },
  { name: "colours", kind: "uot", title: "Colour transfer", what: "96 colours at noon, 96 at dusk" },
  { name: "outlines", kind: "gromov", title: "Two drawings", what: "60 points of a curve, 48 of it turned" },
];

export const titleOf = (name: string): string => SAMPLES.find((one) => one.name === name)?.title ?? name;
