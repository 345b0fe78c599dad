// All callbacks.
#pragma once

#include "cohort/keras/callbacks/backup_and_restore.h"
#include "cohort/keras/callbacks/csv_logger.h"
#include "cohort/keras/callbacks/early_stopping.h"
#include "cohort/keras/callbacks/lambda_callback.h"
#include "cohort/keras/callbacks/learning_rate.h"
#include "cohort/keras/callbacks/model_checkpoint.h"
#include "cohort/keras/callbacks/tensor_board.h"
#include "cohort/keras/callbacks/terminate_on_nan.h"
#include "cohort/keras/model/callback.h"
#include "cohort/keras/model/callback_list.h"
#include "cohort/keras/training/progbar_logger.h"
