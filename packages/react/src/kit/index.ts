'use client'; // everything here runs in the browser, even if a server component imports it

export { type CallMedia, type CallMediaOptions, type CallSource, openCallMedia } from './call-media.js';
export { CallView, type CallViewProps } from './call-view.js';
export { Chat, type ChatProps, type ChatState, useChat } from './chat.js';
export { ConnectionBanner, ConnectionStatus, Notice, type NoticeProps } from './connection.js';
export { Controls, type ControlsProps } from './controls.js';
export {
  DeviceSelect,
  type DeviceSelectProps,
  type Speaker,
  type SpeakerChoice,
  SpeakerSelect,
  useSpeakers,
} from './devices.js';
export { Icon, IconButton, type IconButtonProps, type IconName, type IconProps } from './icons.js';
export { LevelMeter, useSoundLevel } from './level.js';
export { useNews } from './news.js';
export { Panel, type PanelProps } from './panel.js';
export { hueOf, nameOf, nameOfPeer, titleOf } from './people.js';
export { PreJoin, type PreJoinProps } from './pre-join.js';
export { type DeviceControl, type JoiningMedia, type Preview, usePreview } from './preview.js';
export { type Stage, type StageLayout, useStage } from './stage.js';
export { Avatar, Tile, type TileProps } from './tile.js';
export {
  layoutSpotlight,
  layoutTiles,
  type Rectangle,
  type TileArea,
  type TileLayout,
  type TileLayoutOptions,
  useTileLayout,
  type UseTileLayoutOptions,
} from './tile-layout.js';
export { type OwnTile, Tiles, type TilesProps } from './tiles.js';
